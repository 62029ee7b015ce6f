"""Probes of edges: sent at their interval, answered, counted; equal in all engines."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from google.protobuf import text_format

from emulation.errors import FailedRunError, UnsupportedError
from emulation.outcomes.outcome import Outcome
from emulation.programs.probes import Timer, destination, frame, timer_of
from emulation.programs.switch_program import Size, load_program
from emulation.taps import tap_named
from emulation.virtual import simulated
from emulation.virtual.capture import capture_files
from emulation.virtual.fabric import VirtualFabric
from emulation.virtual.switch_state import state_of
from fattree.errors import PhysicsError
from fattree.experiment.model import Scenario
from fattree.shape.topology import FatTree
from fattree.texts.shipped import EXPERIMENTS
from fattree.units import PS_PER_US
from sim.programs.programmed import Programmed
from sim.sweeps.accounts import refuse_impossible
from tests.emulation.virtual.test_capture import read
from tests.parity.drawing import one_in
from tests.parity.own_programs import Case, judge
from tests.parity.probing import HEADER_BYTES, case, probing
from tests.parity.test_virtual_equals_simulator import assert_same
from tests.python_network.fabric import PythonFabric

PAIR = {"matrix": "pairs", "pairs": [[0, 9]], "message_bytes": 200 * 4096}
LEAVES = {"edges_per_pod": 3, "hosts_per_edge": 3, "aggs_per_pod": 2}
OUTAGES = [
    {"link": "edge0_0-agg0_0", "down_ns": 2000, "up_ns": 9000},
    {"link": "agg1_0-core0_0", "down_ns": 0},
]


def scenario(folder: Path, *, interval_us: int = 2, **tables: Any) -> Scenario:
    settings = {
        "fabric": {"k": 4},
        "collective": {"message_bytes": 30 * 4096 + 7},
        "seed": 3,
        "policy": "simple_rr",
        "defines": {"PROBE_INTERVAL_US": str(interval_us)},
    }
    return Scenario.model_validate({**settings, **tables, "program": str(probing(folder))})


def plain(of: Scenario) -> Scenario:
    return of.model_copy(update={"program": None})


def readable(of: Scenario) -> PythonFabric:
    return PythonFabric(plain(of), simulated.program_of(of))


def virtual(of: Scenario, **options: Any) -> VirtualFabric:
    return VirtualFabric(plain(of), simulated.program_of(of), **options)


def cells(network: VirtualFabric | PythonFabric, array: str) -> dict[tuple[str, int], int]:
    """Return the cells of an array of all switches, those that are not zero."""
    return {
        (state.switch, number): cell[0]
        for state in state_of(network)
        if state.array.rpartition(".")[2] == array
        for number, cell in state.cells
    }


TABLES: dict[str, dict[str, Any]] = {
    "unlimited": {"fabric": {"k": 4, "queue_bytes": 0}},
    "drops": {"fabric": {"k": 4, "queue_bytes": 3 * 4200}},
    "failures": {"failures": {"events": OUTAGES}},
    "losses": {"failures": {"losses": [{"link": "edge0_0-agg0_0", "share": 0.3}]}},
    "slow": {"failures": {"degraded": [{"link": "edge0_0-agg0_0", "rate": 0.25, "at_ns": 900}]}},
    "trimming": {"fabric": {"k": 4, "queue_bytes": 3 * 4200}, "transport": {"trimming": True}},
    "leaf-spine": {"fabric": LEAVES},
    "rails": {"fabric": {**LEAVES, "planes": 2}},
    "liveness": {"controller": {"detection": "probe"}, "failures": {"events": OUTAGES}},
}


# These three reach most of the code; drawn experiments combine the others.
QUICK = ("failures", "leaf-spine", "liveness")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in TABLES],
)
def test_all_engines_have_the_digest_of_the_readable_network(name: str, tmp_path: Path) -> None:
    of = scenario(tmp_path, interval_us=1, **TABLES[name])
    networks = (readable(of), virtual(of), virtual(of, is_interpreted=True))
    judged, *engines = [(network.run(), state_of(network)) for network in networks]
    assert judged[0].accounts.unaccounted == 0
    for outcome, state in engines:
        assert outcome.digest == judged[0].digest
        assert outcome.accounts == judged[0].accounts
        assert outcome.ports == judged[0].ports
        assert state == judged[1]

    if of.controller.detection == "announced":
        result = simulated.run(of)
        assert_same(replace(judged[0], own_program="probing.p4"), result)
        refuse_impossible(result)
        in_threads = simulated.run(of, threads=2)
        assert in_threads.end_ps == result.end_ps
        assert in_threads.ports.bytes.tolist() == result.ports.bytes.tolist()


@pytest.mark.parametrize("number", one_in(3, range(12), first=1))
def test_drawn_experiments_are_equal(number: int, tmp_path: Path) -> None:
    assert judge(Case(case(number, tmp_path), is_copy=False, about=""))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(12, 72))
def test_more_drawn_experiments_are_equal(number: int, tmp_path: Path) -> None:
    assert judge(Case(case(number, tmp_path), is_copy=False, about=""))


def test_each_edge_sends_a_probe_to_each_other_in_an_interval(tmp_path: Path) -> None:
    network = virtual(scenario(tmp_path, collective=PAIR, interval_us=4))
    outcome = network.run()
    # By the end all probes have arrived that were sent a round trip before it.
    sent = outcome.end_ps * 7 // (4 * PS_PER_US) + 1
    probes = cells(network, "probes")
    rounds = (outcome.end_ps - outcome.scenario.zero_load_rtt_ps) // (4 * PS_PER_US)
    assert rounds >= 2 and len(probes) == 8 * 7
    assert all(rounds <= count <= rounds + 2 for count in probes.values())
    # Data have tag 9, at Feedback; probes and answers have 7, at Probe.
    assert {number for _, number in cells(network, "tags")} == {9}
    assert {number for _, number in cells(network, "probe_tags")} == {7}
    # Of 200 packets and ACKs; a sender may have sent two more.
    assert 400 <= outcome.accounts.sent - 8 * sent <= 402


def test_a_probe_crosses_links_and_its_answer_as_many(tmp_path: Path) -> None:
    network = virtual(scenario(tmp_path, collective=PAIR))
    network.run()
    probes, links = cells(network, "probes"), cells(network, "probe_links")
    answers, both_ways = cells(network, "answers"), cells(network, "answer_links")
    # Of eight edges those of a pod are two links away, all others four.
    for (switch, peer), count in probes.items():
        is_near = switch.removeprefix("edge")[0] == str(peer // 2)
        assert links[switch, peer] == count * (2 if is_near else 4)
    # The header comes back with its count.
    for (switch, peer), count in answers.items():
        is_near = switch.removeprefix("edge")[0] == str(peer // 2)
        assert both_ways[switch, peer] == 2 * count * (2 if is_near else 4)


def test_edges_that_send_probes_alone_send_no_more_than_they_may(tmp_path: Path) -> None:
    of = scenario(tmp_path, interval_us=1, collective={**PAIR, "message_bytes": 1})
    result = simulated.run(of)
    refuse_impossible(result)
    # As many turns as have begun by the end: seven in a microsecond.
    assert result.probes == result.end_ps * 7 // PS_PER_US + 1
    with pytest.raises(PhysicsError, match="more packets than have come to it"):
        refuse_impossible(replace(result, probes=0))


def test_a_probe_may_have_no_answer(tmp_path: Path) -> None:
    of = scenario(tmp_path, collective=PAIR)
    of = of.model_copy(update={"defines": (*of.defines, ("SILENT", "1"))})
    network = virtual(of)
    outcome = network.run()
    assert cells(network, "probes") and not cells(network, "answers")
    assert outcome.accounts.unaccounted == outcome.accounts.unrouted == 0


def test_hosts_never_see_probes_and_links_between_switches_carry_their_bytes(
    tmp_path: Path,
) -> None:
    of = scenario(tmp_path, collective={**PAIR, "message_bytes": 20 * 4096})
    result = simulated.run(of)
    tree = of.tree
    number = np.arange(tree.first_port(tree.switches))
    is_edge = number < tree.first_port(tree.edges)
    is_access = is_edge & (number % len(tree.ports(0)) < tree.hosts_per_edge)
    assert result.ports.packets[is_access].sum() == 2 * 20
    # 20 packets of data and 20 ACKs cross four links between switches, all others carry probes.
    probes = result.ports.packets[~is_access].sum() - 4 * 40
    size = result.ports.bytes[~is_access].sum()
    flows = 20 * (of.data_bytes + of.ack_bytes) + 40 * HEADER_BYTES
    assert probes > 100
    assert size == 4 * flows + probes * (of.ack_bytes + HEADER_BYTES)


def test_a_failed_link_loses_probes_and_the_sums_hold(tmp_path: Path) -> None:
    of = scenario(
        tmp_path,
        collective=PAIR,
        failures={
            "events": [{"link": "edge3_1-agg3_0", "down_ns": 0}],
            "convergence_rtt": float("inf"),
        },
    )
    network = virtual(of)
    accounts = network.run().accounts
    assert accounts.lost > 0 and accounts.unaccounted == 0
    # The other uplink of edge 7, the second of pod 3, goes on; without the failure none is missing.
    probes = cells(network, "probes")
    behind = [count for (switch, _), count in probes.items() if switch == "edge3_1"]
    elsewhere = [count for (switch, _), count in probes.items() if switch != "edge3_1"]
    assert 0 < sum(behind) / 7 < 0.8 * np.mean(elsewhere)


def test_probes_without_a_route_are_counted(tmp_path: Path) -> None:
    events = [{"link": f"edge3_1-agg3_{agg}", "down_ns": 0} for agg in range(2)]
    network = virtual(scenario(tmp_path, collective=PAIR, failures={"events": events}))
    accounts = network.run().accounts
    assert accounts.unrouted > 0 and accounts.unaccounted == 0
    assert not any(switch == "edge3_1" for switch, _ in cells(network, "probes"))


def test_a_run_that_stands_still_ends_although_probes_go_on(tmp_path: Path) -> None:
    losses = [{"link": f"edge0_0-agg0_{agg}", "share": 1} for agg in range(2)]
    of = scenario(tmp_path, collective=PAIR, failures={"losses": losses})
    for network in (readable(of), virtual(of)):
        with pytest.raises(FailedRunError, match="no progress since"):
            network.run()


@pytest.mark.slow
def test_a_run_that_probes_may_save_is_given_three_intervals_more(tmp_path: Path) -> None:
    losses = [{"link": f"edge0_0-agg0_{agg}", "share": 1} for agg in range(2)]
    ends_us = []
    for interval_us in (10, 1000):
        of = scenario(
            tmp_path, interval_us=interval_us, collective=PAIR, failures={"losses": losses}
        )
        with pytest.raises(FailedRunError) as caught:
            virtual(of).run()

        ends_us.append(float(str(caught.value).split()[1]))

    assert ends_us[0] < 1000 < 3 * 1000 < ends_us[1]


def test_probes_go_on_after_the_flows_where_time_is_let_pass(tmp_path: Path) -> None:
    network = virtual(scenario(tmp_path, collective=PAIR))
    network.advance(60 * PS_PER_US)
    before = cells(network, "probes")
    assert network.is_finished
    network.advance(100 * PS_PER_US)
    after = cells(network, "probes")
    # Forty microseconds are twenty intervals.
    assert {after[cell] - count for cell, count in before.items()} == {20}


@pytest.mark.parametrize(("interval_us", "fits"), [(4, False), (5, True), (6, True)])
def test_a_storm_of_probes_is_refused(interval_us: int, fits: bool, tmp_path: Path) -> None:
    # 7 probes of 64 + 3 bytes and gaps of 20 in 5 us are a tenth of two uplinks' 4.872 Gb/s.
    fabric = {"k": 4, "rate_gbps": 7 * 87 * 8 / 5 / 2 / 100}
    of = scenario(tmp_path, interval_us=interval_us, fabric=fabric, collective=PAIR)
    assert (of.ack_bytes, of.packets.gap_bytes) == (64, 20)
    if fits:
        assert isinstance(virtual(of).run(), Outcome)
        return

    with pytest.raises(UnsupportedError, match="at least -D PROBE_INTERVAL_US=5"):
        simulated.run(of)
    with pytest.raises(UnsupportedError, match=r"7 others take 12.5 % of its uplinks.*10 %"):
        virtual(of)


def test_turns_fill_an_interval_and_every_edge_gets_its_own_probe() -> None:
    tree = FatTree(k=4)
    timer = Timer(10 * PS_PER_US, 7)
    assert [timer.due_ps(number) for number in (0, 1, 7, 8)] == [0, 1428571, 10000000, 11428571]
    for turn in range(7):
        assert {destination(tree, edge, turn) for edge in range(8)} == {*range(8)}
    for edge in range(8):
        assert {destination(tree, edge, turn) for turn in range(7)} == {*range(8)} - {edge}


def test_probes_stay_in_their_plane(tmp_path: Path) -> None:
    of = scenario(tmp_path, fabric={**LEAVES, "planes": 2})
    timer = timer_of(of, simulated.program_of(of))
    assert timer is not None and timer.turns == 2
    assert {destination(of.tree, edge, turn) for edge in (3, 4, 5) for turn in (0, 1)} == {3, 4, 5}


def test_an_edge_without_others_sends_nothing(tmp_path: Path) -> None:
    fabric = {"edges_per_pod": 1, "hosts_per_edge": 3, "aggs_per_pod": 2}
    of = scenario(tmp_path, fabric=fabric, collective={**PAIR, "pairs": [[0, 1]]})
    assert virtual(of).run().accounts.in_flight == 0


def test_a_probe_is_an_ipv4_packet_as_long_as_an_ack(tmp_path: Path) -> None:
    of = scenario(tmp_path)
    made = frame(of, 0, 5)
    ipv4 = made[16:36]
    assert made[:2] == b"\xff\x00" and made[14:16] == b"\x08\x00"
    assert len(made) == 2 + 62
    assert ipv4[12:] == bytes((10, 0, 0, 2, 10, 2, 1, 2))
    assert (
        sum(int.from_bytes(ipv4[byte : byte + 2], "big") for byte in range(0, 20, 2)) % 0xFFFF == 0
    )


def test_captures_have_probes_on_links_between_switches_alone(tmp_path: Path) -> None:
    of = scenario(tmp_path, collective={**PAIR, "message_bytes": 20 * 4096})
    taps = [tap_named(of.tree, name) for name in ("edge0_0:3", "h0_0_0")]
    with capture_files(taps, tmp_path, "ofan-1-") as files:
        virtual(of, files=files).run()

    of_link, of_host = (
        [frame for _, _, frame in read(tap.path(tmp_path, "ofan-1-", ".pcapng"))] for tap in taps
    )
    assert {frame[12:14] for frame in of_host} == {b"\x08\x00"}
    probes = [frame for frame in of_link if frame[12:14] == b"\x88\xb5"]
    # Ethernet, the header, IPv4, and zeros to the length of an ACK without its FCS.
    assert probes and {len(frame) for frame in probes} == {62 + HEADER_BYTES}
    assert {frame[14 + HEADER_BYTES + 9] for frame in probes} == {253}
    assert not any(any(frame[34 + HEADER_BYTES :]) for frame in probes)
    assert {frame[12:14] for frame in of_link} == {b"\x88\xb5", b"\x88\xb6"}


@pytest.mark.parametrize("compiler", ["ofan", "p4c"])
def test_the_interval_is_read_from_the_compiled_program(
    compiler: Literal["ofan", "p4c"], tmp_path: Path
) -> None:
    if compiler == "p4c" and shutil.which("p4c-bm2-ss") is None:
        pytest.skip("p4c is not installed")

    macros = (("PROBE_INTERVAL_US", "123456"),)
    size = Size(uplinks=2)
    program = load_program(probing(tmp_path), size, compiler=compiler, macros=macros)
    assert program.probe_interval_us == 123_456
    assert program.edge_header_bytes == HEADER_BYTES


@pytest.mark.parametrize("name", ["path_queues.p4", "two_choices.p4"])
def test_programs_without_probes_have_no_interval(name: str) -> None:
    assert load_program(EXPERIMENTS / name, Size(uplinks=2)).probe_interval_us == 0


def test_a_compiled_program_has_probes_too(tmp_path: Path) -> None:
    of = scenario(tmp_path, collective=PAIR)
    program = simulated.program_of(of)
    (tmp_path / "probing.json").write_bytes(program.bmv2_json)
    info = text_format.MessageToString(program.pipeline.p4info)
    (tmp_path / "probing.txtpb").write_text(info)
    compiled = of.model_copy(update={"program": str(tmp_path / "probing.json"), "defines": ()})
    assert (
        simulated.run(compiled).ports.packets.tolist() == simulated.run(of).ports.packets.tolist()
    )


def test_the_kernels_make_room_for_probes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    grow = Programmed._grow

    def noted(self: Programmed) -> None:
        grow(self)
        sizes.append(len(self.frames.packets))

    monkeypatch.setattr(Programmed, "_grow", noted)
    of = scenario(tmp_path, interval_us=1, collective={**PAIR, "message_bytes": 1})
    network = virtual(of)
    network.advance(30 * PS_PER_US)
    assert sizes
