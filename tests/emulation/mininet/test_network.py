"""A fat-tree of switch processes over veths: one network, brought up once, and its duties."""

import json
import os
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

import emulation.held.cli
import emulation.held.client
from controller.errors import ControllerError
from controller.fabric_controller import LinkChange
from emulation.commands.pcap import decode, frames
from emulation.errors import EmulationError, NetworkError
from emulation.held.client import ControlError, ask
from emulation.held.commands import Held
from emulation.held.messages import GetStatus
from emulation.held.server import control_server
from emulation.mininet.building import Setup, mininet_fabric
from emulation.mininet.kernel import refuse_if_unable
from emulation.mininet.run import run_on
from emulation.programs.switch_program import Size, SwitchProgram, built_in
from emulation.taps import tap_named
from fattree.experiment.model import Failures, Scenario
from fattree.shape.addressing import link_named
from fattree.units import PS_PER_NS

pytestmark = [pytest.mark.root, pytest.mark.slow]
SCENARIO = Scenario(
    policy="ofan",
    fabric={"k": 4, "rate_gbps": 0.0016, "latency_ns": 6e6},
    collective={"message_bytes": 24 * 4096},
    failures={"convergence_rtt": 0.5},
)
LINK = "edge0_0-agg0_1"


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    return tmp_path_factory.mktemp("captures")


@pytest.fixture(scope="module")
def fabric(captured, tmp_path_factory):
    try:
        refuse_if_unable()
    except NetworkError as error:
        pytest.skip(str(error))
    taps = tuple(tap_named(SCENARIO.tree, port) for port in ("h0_0_0", "edge0_0:3", "edge0_0:4"))
    with mininet_fabric(
        SCENARIO,
        Setup(taps=taps, captured=captured, folder=tmp_path_factory.mktemp("run") / "ofan"),
    ) as fabric:
        yield fabric


@pytest.fixture
def commands(fabric, monkeypatch):
    """Return a function that runs our commands while this thread serves the held network."""
    held = Held(fabric, lambda _line: None, "complete in 5.0 ms")
    monkeypatch.setattr(emulation.held.cli, "ask", lambda request: ask(request, fabric.folder))
    with (
        control_server(fabric.folder, fabric.loop.selector, held.handlers),
        ThreadPoolExecutor(2) as pool,
    ):

        def run(call, *arguments):
            future = pool.submit(call, *arguments)
            fabric.loop.run(lambda: held.tick() or future.done())
            return future.result()

        run.background = pool.submit
        run.serve = lambda is_over: fabric.loop.run(lambda: held.tick() or is_over())
        yield run


def ofan(command, *arguments):
    """Run a command of the command line; return its output."""
    result = CliRunner().invoke(getattr(emulation.held.cli, command), list(arguments))
    return result.output.removeprefix("Error: ").strip()


def snapshot(fabric):
    """Return the entries of all switches, read back over P4Runtime."""
    return [dict(fabric.entries(switch)) for switch in range(fabric.tree.switches)]


@contextmanager
def broken(fabric, link):
    """Keep a link down, with new schedules installed."""
    links = frozenset((link_named(fabric.tree, link),))
    for change in (LinkChange(down=links), LinkChange(up=links)):
        installation = fabric.change_links(change)
        fabric.loop.run(lambda installation=installation: installation.took_ps is not None)
        if change.down:
            yield installation


def test_every_packet_of_a_permutation_is_accounted_for(fabric):
    outcome = run_on(fabric)
    assert outcome.accounts.unaccounted == 0
    assert outcome.accounts.received == outcome.accounts.sent >= 2 * 16 * 24
    assert outcome.cct_ps > 23 * SCENARIO.slot_ps + 6 * SCENARIO.latency_ps


def test_the_switches_hold_the_plan(fabric):
    assert [
        fabric.controller.entries(switch) for switch in range(fabric.tree.switches)
    ] == snapshot(fabric)


def test_a_broken_link_is_planned_around_and_its_repair_restores_the_first_plan(fabric):
    first = snapshot(fabric)
    with broken(fabric, LINK) as installation:
        assert installation.switches == 8, (
            "the edge, its agg, and the edges and aggs that reach it through them"
        )
        assert installation.took_ps >= SCENARIO.convergence_ps
        assert run_on(fabric, with_events=False).accounts.lost == 0
    assert snapshot(fabric) == first


def test_a_link_that_fails_in_the_middle_loses_packets_and_traffic_goes_on(fabric):
    links = frozenset((link_named(fabric.tree, LINK),))
    moments = ((8, LinkChange(down=links)), (20, LinkChange(up=links)))
    start = fabric.agents.start

    def start_and_break(origin_ns):
        for slots, change in moments:
            fabric.loop.at(
                origin_ns + slots * SCENARIO.slot_ps // PS_PER_NS,
                lambda change=change: fabric.change_links(change),
            )
        start(origin_ns)

    fabric.agents.start = start_and_break
    try:
        outcome = run_on(fabric)
    finally:
        del fabric.agents.start
    assert outcome.accounts.lost > 0
    assert outcome.accounts.unaccounted == 0


def test_commands_break_and_mend_links_while_traffic_runs(commands, fabric):
    before = commands(ofan, "schedule", "edge0_0", "--json")
    traffic = commands.background(
        ofan, "traffic", "start", "--wait", "--message-bytes", str(40 * 4096)
    )
    commands.serve(lambda: not fabric.agents.have_reported())
    assert f"{LINK} is down; new schedules installed after" in commands(ofan, "link", "down", LINK)
    assert "agg0_1" not in commands(ofan, "schedule", "edge0_0")
    assert "DOWN" in commands(ofan, "link", "list")
    assert f"{LINK} is up; new schedules installed after" in commands(ofan, "link", "up", LINK)
    commands.serve(traffic.done)
    assert ", 0 unaccounted for" in traffic.result()
    assert commands(ofan, "schedule", "edge0_0", "--json") == before


def test_a_degraded_link_is_spared_until_it_is_restored(commands, fabric):
    before = commands(ofan, "schedule", "edge0_0", "--json")
    said = commands(ofan, "link", "degrade", LINK, "--rate", "0.25")
    assert f"{LINK} is at 25 % of its rate; new schedules installed after" in said
    assert "up, at 25 % of its rate" in commands(ofan, "link", "list")
    shown = " ".join(commands(ofan, "status").split())
    assert f"slow links: {LINK} at 25 % of its rate" in shown
    assert f"routes avoid: nothing, and spare: {LINK}" in shown
    uplinks = [
        row["uplinks"] for row in json.loads(commands(ofan, "schedule", "edge0_0", "--json"))
    ]
    assert {tuple(map(uplink_names.count, ("agg0_0", "agg0_1"))) for uplink_names in uplinks} == {
        (4, 1)
    }
    assert run_on(fabric, with_events=False).accounts.unaccounted == 0
    said = commands(ofan, "link", "restore", LINK)
    assert f"{LINK} is at its full rate; new schedules installed after" in said
    assert commands(ofan, "schedule", "edge0_0", "--json") == before


def test_status_shows_every_switch(commands):
    shown = commands(ofan, "status")
    assert shown.count("ofan  ") >= 20
    # The network was held after a run.
    assert "traffic: complete in 5.0 ms" in shown
    assert "failed links: none" in shown


def test_pointers_show_where_the_next_packet_goes(commands, fabric):
    # Pointers of a network without any traffic are at their starts.
    assert run_on(fabric, with_events=False).accounts.unaccounted == 0
    assert "slot" in commands(ofan, "pointers", "edge0_0")


def test_registers_are_shown_with_their_cells(commands):
    rows = json.loads(commands(ofan, "registers", "edge0_0", "--json"))
    (pointers,) = (row for row in rows if row["array"].endswith("pointers"))
    assert pointers["size"] > len(pointers["cells"])
    assert "pointers" in commands(ofan, "registers", "edge0_0")


def test_traffic_can_be_stopped(commands):
    assert (
        commands(ofan, "traffic", "start", "--message-bytes", str(10**7)) == "traffic has started"
    )
    said = commands(ofan, "traffic", "stop")
    assert said.startswith("ended: stopped, 16 flows are not complete")
    totals = re.search(r"(\d+) packets sent, (\d+) received, .* (\d+) lost on links", said)
    assert totals, said
    sent, received, lost = map(int, totals.groups())
    assert sent >= received >= lost == 0
    assert said.endswith(" 0 unaccounted for")
    # `status` shows the last event.
    assert f"traffic: {said}" in commands(ofan, "status")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("link", "degrade", "h0_0_0", "--rate", "0.5"), "h0_0_0 is a host's link, which no"),
        (("link", "restore", "h0_0_0-edge0_0"), "is a host's link, which no command changes"),
        (("link", "down", "edge0_0-core0_0"), "there is no link edge0_0-core0_0"),
        (("link", "up", LINK), f"{LINK} is up already"),
        (("link", "restore", LINK), f"{LINK} is at its full rate already"),
        (("schedule", "edge9_9"), "there is no switch edge9_9"),
        (("pointers", "nonsense"), "is not a switch's name"),
        (("registers", "edge9_9"), "there is no switch edge9_9"),
        (("traffic", "stop"), "no traffic is running"),
    ],
)
def test_commands_refuse_nonsense_in_one_line(commands, arguments, reason):
    said = commands(ofan, *arguments)
    assert reason in said
    assert "\n" not in said


def test_a_command_without_rights_or_network_is_one_line(tmp_path):
    with pytest.raises(ControlError, match="no emulation is held here"):
        ask(GetStatus(), tmp_path)


def test_the_sockets_are_for_root_only(commands, fabric):
    assert stat.S_IMODE(fabric.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((fabric.folder / "control").stat().st_mode) == 0o600


def test_a_files_slow_link_is_slow_from_the_start_and_spared(tmp_path):
    slow = ({"link": LINK, "rate": 0.25}, {"host": "h3_1_1", "rate": 0.2, "direction": "up"})
    scenario = SCENARIO.model_copy(
        update={"failures": Failures(degraded=slow, convergence_rtt=0)}, deep=True
    )
    with mininet_fabric(scenario, Setup(folder=tmp_path / "ofan")) as fabric:
        end = fabric.tree.link_ends(link_named(fabric.tree, LINK))[0]
        assert fabric.switches.shares == dict.fromkeys(
            fabric.tree.link_ends(link_named(fabric.tree, LINK)), 0.25
        )
        outcome = run_on(fabric)
    assert outcome.accounts.unaccounted == 0
    # A host at a fifth of its rate takes five times as long from its first packet to its last.
    took = {flow.source: flow.done_ps - flow.start_ps for flow in outcome.flows}
    assert took.pop(15) > 5 * 23 * SCENARIO.slot_ps > min(took.values())
    packets = {port.port: port.packets for port in outcome.ports if port.switch == end.switch}
    whole = packets[end.port - 1]
    # Four times as many packets, and the others that a real network sends.
    assert 3 < whole / packets[end.port] < 5


def test_a_switch_that_dies_is_named(captured, tmp_path):
    with mininet_fabric(SCENARIO, Setup(folder=tmp_path / "ofan")) as fabric:
        os.kill(fabric.switches.processes.pids["core1_1"], 9)
        with pytest.raises(EmulationError, match="core1_1 was ended by SIGKILL"):
            run_on(fabric)


def test_captures_hold_data_and_acks_of_an_uplink(fabric, captured):
    run_on(fabric)
    lines = [
        decode(time_ps, frame) for time_ps, frame, _ in frames(captured / "ofan-1-edge0_0-3.pcap")
    ]
    assert {line.what for line in lines} == {"DATA", "ACK"}
    assert all(line.intact for line in lines)


def test_a_pipeline_that_a_switch_refuses_is_named(fabric, tmp_path):
    good = built_in("ofan", Size(2))
    setup = Setup(program=SwitchProgram(b"{}", good.pipeline), folder=tmp_path / "ofan")
    with (
        pytest.raises(ControllerError, match=r"^(edge|agg|core)\d_\d: INVALID_ARGUMENT: .*$"),
        mininet_fabric(SCENARIO, setup),
    ):
        pass
