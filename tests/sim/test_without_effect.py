"""Keys without effect are reported, and have none: runs with and without them are equal."""

from pathlib import Path
from typing import Any

import pytest

import ofan
from fattree.errors import ExperimentError
from fattree.experiment.model import HostRule, Scenario
from fattree.texts.experiment_file import parse_experiment
from fattree.texts.shipped import EXPERIMENTS
from fattree.texts.sweep_file import load_sweep
from fattree.texts.without_effect import READERS, late, punished, unread
from sim import run

SMALL = ("fabric.k=4", "collective.message_bytes=32KiB")
# A value of each key, and the policy of runs that heed it.
OTHERS: dict[str, tuple[str, str]] = {
    "packets.tunnel_bytes": ("20", "host_dr"),
    "load_balancer.rr_pointer": ("shared", "simple_rr"),
    "load_balancer.schedule_orders": ("per_pointer", "ofan"),
    "load_balancer.edge_pointers": ("host", "ofan"),
    "load_balancer.agg_pointers": ("host", "ofan"),
    "load_balancer.queue_staleness_ns": ("1000", "jsq"),
    "load_balancer.bins_percent": ("[0.1,0.2,0.3]", "switch_pkt_ar"),
    "load_balancer.plb_acks": ("1", "host_flowlet_ar"),
    "load_balancer.plb_percent": ("1", "host_flowlet_ar"),
    "load_balancer.plb_gaps": ("1", "host_flowlet_ar"),
    "load_balancer.freeze_us": ("1", "host_pkt_ar"),
    "load_balancer.reps_explore_packets": ("1", "host_pkt_ar"),
    "load_balancer.connections": ("pair", "mrc"),
    "load_balancer.ecn_full_percent": ("60", ""),
    "load_balancer.ecn_chance": ("0.5", ""),
    "transport.sack_threshold": ("1", ""),
    "transport.reorder_timeout_rtt": ("2", ""),
    "defines": ("{GAP=3}", ""),
    "controller.weights": ("bgp", ""),
    "controller.spread_rtt": ("[0,1]", ""),
    "failures.at_ns": ("1000", ""),
    "failures.convergence_rtt": ("2", ""),
    "failures.local_repair": ("true", ""),
}


def scenario(*settings: str) -> Scenario:
    return next(parse_experiment("", "here", [*SMALL, *settings]).scenarios())


def outcome(of: Scenario) -> dict[str, Any]:
    record = run(of).record.model_dump()
    mine = ("cpu_s", "max_rss_bytes", "convergence_rtt", "scenario_hash")
    return {key: value for key, value in record.items() if key not in mine}


def test_every_key_has_a_case() -> None:
    assert OTHERS.keys() == READERS.keys()


@pytest.mark.parametrize("key", OTHERS)
def test_what_is_said_to_have_no_effect_has_none(key: str) -> None:
    value, heeds = OTHERS[key]
    quiet = "flow" if heeds != "flow" else "ofan"
    without = scenario(f"policies={quiet}")
    with_key = scenario(f"policies={quiet}", f"{key}={value}")
    (said,) = unread([with_key])
    assert said.startswith(f"{key} has no effect here: ")
    assert outcome(with_key) == outcome(without)

    # The policy that heeds it is named, and with it there is no message, whatever runs beside.
    if heeds:
        assert heeds in said
        assert unread([with_key, scenario(f"policies={heeds}", f"{key}={value}")]) == []


def test_what_is_heeded_is_not_said() -> None:
    rate = "failures.rate=0.1"
    for key in ("at_ns=1000", "convergence_rtt=2", "local_repair=true"):
        assert unread([scenario(rate, f"failures.{key}")]) == []

    assert unread([scenario("transport.recovery=sack", "transport.sack_threshold=3")]) == []
    slow = 'failures.degraded=[{link="agg0_0-core0_0",rate=0.5,at_ns=5}]'
    assert unread([scenario(slow, "failures.convergence_rtt=2")]) == []
    weights = ("failures.rate=0.1", "controller.weights=bgp")
    assert unread([scenario(*weights)]) == [] != unread([scenario(*weights, "policies=ofan_fib")])
    lags = ("failures.rate=0.1", "controller.spread_rtt=[0,1]")
    never = "failures.convergence_rtt=inf"
    assert unread([scenario(*lags)]) == [] != unread([scenario(*lags, never)])
    flowlets = scenario("load_balancer.plb_acks=3")
    rule = HostRule(file="x.py", text="")
    assert unread([flowlets]) and not unread([flowlets.model_copy(update={"host_rule": rule})])
    pointers = scenario("load_balancer.rr_pointer=shared")
    assert unread([pointers]) and not unread([pointers.model_copy(update={"program": "x.p4"})])


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("*.toml")), ids=lambda path: path.stem)
def test_experiments_that_come_along_say_nothing_without_effect(path: Path) -> None:
    try:
        scenarios = load_sweep(path)
    except ExperimentError as error:
        # Its workload is made first (docs/workloads.md).
        assert "step_405b.parquet" in str(error)
        return

    # Its macro is for the program that it is run with.
    if path.stem == "gaps":
        assert unread(scenarios) != []
        scenarios = [swept.model_copy(update={"program": "flowlets.p4"}) for swept in scenarios]

    assert unread(scenarios) == []


@pytest.mark.parametrize(
    "setting, said",
    [
        ('failures.events=[{link="agg0_0-core0_0",down_ns=5e5}]', "the failure of agg0_0-core0_0"),
        (
            'failures.degraded=[{link="agg0_0-core0_0",rate=0.5,at_ns=5e5}]',
            "the slowing down of agg0_0-core0_0",
        ),
        ("failures={rate=0.1,at_ns=5e5}", "the failure of failures.rate's links"),
    ],
)
def test_failures_after_the_end_are_told(setting: str, said: str) -> None:
    of = scenario(setting)
    record = run(of).record
    line = f"{said} at 500 µs came after the last flow had finished"
    assert late([(of, record)]) == [line]
    long = record.model_copy(update={"cct_ps": 600 * 10**6})
    assert late([(of, long)]) == []
    assert late([(of, long), (of, record)]) == [f"{line}, in 1 of 2 runs"]


def test_a_failure_before_a_late_start_came_in_time(tmp_path: Path) -> None:
    matrix = tmp_path / "late.cm"
    matrix.write_text("Nodes 16\nConnections 1\n0->15 id 1 start 900000000 size 4096\n")
    file = (f"collective={{matrix='file',file='{matrix}'}}",)
    event = 'failures.events=[{{link="agg0_0-core0_0",down_ns={}}}]'
    of = next(parse_experiment("", "here", ["fabric.k=4", *file, event.format(5e5)]).scenarios())
    assert late([(of, run(of).record)]) == []
    of = next(parse_experiment("", "here", ["fabric.k=4", *file, event.format(1e6)]).scenarios())
    assert len(late([(of, run(of).record)])) == 1


@pytest.mark.parametrize("command", ["sim run", "emulate", "compare"])
def test_commands_say_it(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    command: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    event = 'failures.events=[{link="agg0_0-core0_0",down_ns=5e5}]'
    settings = ("transport.sack_threshold=3", event, "collective.message_bytes=4KiB")
    options = [word for setting in settings for word in ("--set", setting)]
    with pytest.raises(SystemExit) as stopped:
        ofan.main([*command.split(), "demo", "--policies", "ofan", *options])

    err = capsys.readouterr().err
    assert not stopped.value.code
    assert err.count("transport.sack_threshold has no effect here") == 1
    assert err.count("at 500 µs came after the last flow had finished") == 1


@pytest.mark.parametrize(
    ("policies", "named"),
    [
        ("flow,subflow,host_flowlet_ar", ""),
        ("flow,host_pkt,ofan,themis,mrc", "Host Pkt, Ofan, Themis, MRC over ECMP"),
    ],
)
def test_go_back_n_warns_of_load_balancers_that_reorder(policies: str, named: str) -> None:
    settings = (f"policies={policies}", "transport.recovery=go_back_n")
    lines = punished(parse_experiment("", "x", settings).scenarios())
    assert [line.split(": ")[1].split(" will")[0] for line in lines] == ([named] if named else [])
    assert punished(parse_experiment("", "x", settings[:1]).scenarios()) == []
    # A NIC that puts packets in order takes none for lost.
    in_order = (*settings, "transport.reorder_packets=512")
    assert punished(parse_experiment("", "x", in_order).scenarios()) == []


@pytest.mark.parametrize(
    ("policies", "named"),
    [
        ("ofan,uet_bitmap", []),
        (
            "ofan,mrc,mrc_srv6",
            ["MRC over ECMP, MRC over SRv6: MRC is deployed with PFC off (fabric.flow_control)"],
        ),
    ],
)
def test_pauses_warn_of_load_balancers_that_have_none(policies: str, named: list[str]) -> None:
    settings = (f"policies={policies}", "fabric.flow_control=pfc", "fabric.queue_bytes=200000")
    assert punished(parse_experiment("", "x", settings).scenarios()) == named
    assert punished(parse_experiment("", "x", settings[:1]).scenarios()) == []
