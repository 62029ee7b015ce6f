"""Nodes without an event sleep, and flows have a sender as long as they are under way."""

from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fattree.experiment.failures import Storm
from fattree.experiment.model import (
    Collective,
    Fabric,
    FailureEvent,
    Failures,
    LoadBalancer,
    Scenario,
    Transport,
)
from hostagent.transports.state import NEVER
from sim.arrays.network import Network, build
from sim.kernels import foresight
from sim.kernels.events.loop import rest
from sim.kernels.events.upcoming import own_events
from sim.kernels.events.windows import busy
from sim.kernels.foresight import awaiting
from sim.kernels.hosts import awake
from sim.kernels.lists import append
from sim.kernels.ports import FAR
from sim.kernels.ready import give_back_sender
from sim.kernels.receiving import receive_ack, write_share
from sim.kernels.records import ENDED, Records
from sim.kernels.state import ACK, CLOCK, LAST_DONE, NO_SENDER, World
from sim.kernels.windows import FINISHED, REACHED, next_act, start_flows, truncate
from sim.runs.engine import _advance, _advancing, advanced, next_progress_s, run
from sim.runs.standing import acked, counted

ALL_TO_ALL = Collective(matrix="all_to_all", message_bytes=20_000)
INCAST = Collective(
    matrix="pairs", pairs=tuple((sender, 0) for sender in range(1, 16)), message_bytes=60_000
)
DOWN = Failures(
    events=(
        FailureEvent(link="edge0_0-agg0_0", down_ns=1_000, up_ns=9_000),
        FailureEvent(link="agg1_0-core0_0", down_ns=2_000),
    )
)
SCENARIOS = {
    "plain": Scenario(fabric=Fabric(k=4), collective=ALL_TO_ALL),
    "failures": Scenario(fabric=Fabric(k=4), collective=ALL_TO_ALL, failures=DOWN),
    "lanes": Scenario(
        policy="rsq",
        fabric=Fabric(k=4, queue_bytes=20_000),
        collective=INCAST,
        transport=Transport(recovery="sack", trimming=True, acks_first=True),
    ),
    "planes": Scenario(
        fabric=Fabric(k=4, planes=2, plane_use="draw"), collective=ALL_TO_ALL, failures=DOWN
    ),
    "pauses": Scenario(
        fabric=Fabric(k=4, flow_control="pfc", queue_bytes=200_000), collective=INCAST
    ),
    # Long after the pauses, two other hosts are still busy.
    "paused early": Scenario(
        fabric=Fabric(k=4, flow_control="pfc", queue_bytes=121_000),
        collective=Collective(
            matrix="pairs", pairs=(*INCAST.pairs, *[(14, 12)] * 20), message_bytes=60_000
        ),
    ),
    # A switch has nothing to do until a pause ends.
    "storm": Scenario(
        fabric=Fabric(k=4, flow_control="pfc", queue_bytes=200_000),
        collective=Collective(matrix="pairs", pairs=((1, 0),), message_bytes=60_000),
        failures=Failures(storms=(Storm(host="h0_0_0", until_ns=30_000),)),
    ),
    "watchdog": Scenario(
        fabric=Fabric(k=4, flow_control="pfc", queue_bytes=200_000, pause_watchdog_us=3),
        collective=INCAST,
        failures=Failures(storms=(Storm(host="h0_0_0", until_ns=30_000),)),
    ),
    "connections": Scenario(
        policy="host_pkt_ar",
        fabric=Fabric(k=4),
        collective=ALL_TO_ALL,
        load_balancer=LoadBalancer(connections="pair"),
        transport=Transport(recovery="sack"),
    ),
}


def first_arrival(world: World, lists: tuple[int, ...]) -> int:
    """Return when the first packet arrives of those that have begun to leave, or NEVER."""
    links, packets = world.links, world.pool.packets
    times = [
        int(packets[links[number].taken].time_ps)
        for number in lists
        if links[number].taken != links[number].tail
    ]
    # With pauses a packet that waits has no time of arrival, but a number beyond FAR.
    return min((time_ps for time_ps in times if time_ps < FAR), default=NEVER)


@pytest.mark.parametrize("name", list(SCENARIOS))
@pytest.mark.parametrize("until_us", [0.5, 1, 2, 3.7, 5, 8, 12, 20])
def test_no_node_sleeps_longer_than_to_its_next_event(name: str, until_us: float) -> None:
    world = advanced(build(SCENARIOS[name]), round(until_us * 1e6))
    constants = world.constants
    lanes = (0, constants.lanes) if constants.lanes else (0,)
    for port in range(constants.ports):
        lists = tuple(int(world.inputs[port]) + lane for lane in lanes)
        assert world.wakes_ps[port] <= first_arrival(world, lists)

    for host in range(constants.hosts):
        lists = tuple(int(world.hosts[host].towards) + lane for lane in lanes)
        next_ps = min(first_arrival(world, lists), int(next_act(world.hosts[host])))
        assert world.wakes_ps[constants.ports + host] <= max(next_ps, world.counters[CLOCK])


def finished(scenario: Scenario, wakes_all: bool) -> World:
    """Return the world at the end of a run in legs of 100 ns; each may wake all nodes before."""
    network = build(scenario)
    world = network.world
    start_flows(world, network.flows.start_ps)
    status = REACHED
    with _advancing(network, 1) as leg:
        for until_ps in count(100_000, 100_000):
            if wakes_all:
                world.wakes_ps[:] = 0

            world, status = _advance(world, leg, network.routes[0].routes, until_ps)
            if status != REACHED:
                break

    assert status == FINISHED
    truncate(world, int(world.counters[LAST_DONE]))
    return world


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_a_node_that_is_woken_for_nothing_changes_nothing(name: str) -> None:
    expected, world = (finished(SCENARIOS[name], wakes_all) for wakes_all in (False, True))
    assert np.array_equal(world.ledgers, expected.ledgers)
    assert np.array_equal(world.counters, expected.counters)
    assert np.array_equal(counted(world.flows), counted(expected.flows))
    for field in ("data_packets", "ack_packets", "max_bytes", "byte_ps"):
        assert np.array_equal(world.links[field], expected.links[field])


def asleep(wakes_ps: list[int], **constants: int) -> Any:
    return SimpleNamespace(
        wakes_ps=np.array(wakes_ps),
        constants=SimpleNamespace(**constants),
        switches=[
            SimpleNamespace(first_port=0, ports=2),
            SimpleNamespace(first_port=2, ports=2),
            SimpleNamespace(first_port=4, ports=1),
        ],
    )


@pytest.mark.parametrize(("end_ps", "expected"), [(99, 3), (100, 3), (101, 1), (150, 1), (151, 0)])
def test_a_switch_is_awake_from_the_window_of_its_first_arrival_on(
    end_ps: int, expected: int
) -> None:
    # The second port of a switch counts as its first does.
    world = asleep([NEVER, 150, 200, 100, NEVER])
    assert awaiting(world, 0, 3, end_ps) == expected
    assert awaiting(world, 2, 3, end_ps) == 3
    assert awaiting(world, 1, 2, 101) == 1
    assert awaiting(world, 3, 3, end_ps) == 3


@pytest.mark.parametrize(("end_ps", "expected"), [(50, 3), (51, 2), (100, 2), (101, 1)])
def test_a_switch_is_busy_from_the_window_of_its_own_event_on(end_ps: int, expected: int) -> None:
    # The third switch awaits a packet, the second has an event of its own.
    world = asleep([NEVER] * 4 + [50, NEVER, 100, NEVER], ports=5, hosts=0)
    assert busy(world, 0, 3, end_ps) == expected
    assert busy(world, 3, 3, end_ps) == 3


@pytest.mark.parametrize(("end_ps", "expected"), [(99, 2), (100, 2), (101, 1), (150, 1), (151, 0)])
def test_a_machine_is_awake_if_any_of_its_hosts_is(end_ps: int, expected: int) -> None:
    world = asleep([0, NEVER, 200, 150, 100], ports=1, planes=2, machines=2)
    assert awake(world, 0, 2, end_ps) == expected
    assert awake(world, 1, 2, 101) == 1
    assert awake(world, 2, 2, end_ps) == 2


def test_an_idle_switch_sleeps_until_a_control_frame_is_to_be_counted() -> None:
    world = build(SCENARIOS["pauses"]).world
    index = own_events(world, 0)
    rest(world, world.gates, 0, served=0, end_ps=5_000)
    assert world.wakes_ps[index] == FAR

    # On the lane of its second port.
    lane = world.links[world.constants.lanes + 1]
    slot = append(world.pool, lane, 2, world.counters)
    world.pool.packets[slot].time_ps = 7_000
    rest(world, world.gates, 0, served=0, end_ps=5_000)
    assert world.wakes_ps[index] == 7_000

    # After a busy window it stays awake.
    rest(world, world.gates, 0, served=1, end_ps=5_000)
    assert world.wakes_ps[index] == 5_000


def in_turn(messages: int, at_once: int) -> Scenario:
    """Return host 0's messages to host 8, so many of them under way at a time."""
    pairs = tuple((0, 8 + number % at_once) for number in range(messages))
    return Scenario(
        fabric=Fabric(k=4), collective=Collective(matrix="pairs", pairs=pairs, message_bytes=9_000)
    )


def chained(network: Network, at_once: int) -> Network:
    """Let each message begin after the message `at_once` before it."""
    world = network.world
    followers = np.arange(at_once, len(network.flows))
    world.flows.blocked[at_once:] = 1
    world.flows.follower_offset[:] = np.minimum(np.arange(len(network.flows) + 1), len(followers))
    flows = world.flows._replace(followers=followers)
    return replace(network, world=world._replace(flows=flows))


def touched(senders: Records) -> int:
    return int((senders.gap_ps > 0).sum())


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_as_many_senders_are_used_as_flows_are_under_way(at_once: int) -> None:
    network = chained(build(in_turn(12, at_once)), at_once)
    world = advanced(network, 10**9)
    assert np.all(acked(world.flows) == network.flows.packets)
    assert touched(world.flows.senders) == at_once
    assert np.all(world.flows.sender_of == NO_SENDER)
    assert sorted(world.flows.spare_senders.tolist()) == list(range(12))


def test_an_ack_tells_its_receivers_share_also_when_its_flow_has_ended() -> None:
    world = build(in_turn(1, 1)).world
    assert world.rules.tells_share
    ack = world.pool.packets[1]
    ack.flow, ack.status, ack.psn, ack.log = 0, ACK, 2, 3
    write_share(ack, 300)
    before = world.flows.ended.copy()
    receive_ack(world, 0, ack, 7_000)
    assert (world.flows.told.tolist(), world.flows.told_ps.tolist()) == ([300], [7_000])
    assert np.array_equal(world.flows.ended, before)
    assert world.flows.sender_of.tolist() == [NO_SENDER]


def test_flows_that_share_a_connection_keep_their_senders() -> None:
    scenario = SCENARIOS["connections"]
    network = build(scenario)
    world = advanced(network, 10**9)
    flows = len(network.flows)
    assert world.flows.sender_of.tolist() == list(range(flows))
    assert touched(world.flows.senders) == flows
    assert np.all(acked(world.flows) == network.flows.packets)
    assert counted(world.flows).transmissions.tolist() == run(scenario).transmissions.tolist()


def test_progress_has_flows_before_within_and_behind_their_time() -> None:
    scenario = in_turn(2, 2)
    network = build(scenario)
    network.flows.start_ps[1] = 10**9
    early = advanced(network, 500_000).flows
    assert 0 < counted(early).transmissions[0] <= network.flows.packets[0]
    assert acked(early).tolist() == [0, 0]
    assert counted(early).done_ps.tolist() == [NEVER, NEVER]


def test_all_counters_of_a_sender_are_kept_when_its_flow_ends() -> None:
    world = build(in_turn(1, 1)).world
    start_flows(world, np.zeros(1, dtype=np.int64))
    sender = world.flows.senders[world.flows.sender_of[0]]
    for number, name in enumerate(ENDED.names or ()):
        sender[name] = 100 + number

    give_back_sender(world, 0, 0)
    assert world.flows.ended[0].tolist() == tuple(range(100, 100 + len(ENDED.names or ())))


@pytest.mark.parametrize(("awaited", "expected"), [(1, "few"), (2, "ports"), (3, "ports")])
def test_all_ports_are_prefetched_from_a_quarter_of_awaited_ports_on(
    monkeypatch: pytest.MonkeyPatch, awaited: int, expected: str
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(foresight, "foresee_few", lambda *_: asked.append("few"))
    monkeypatch.setattr(foresight, "foresee_ports", lambda *_: asked.append("ports"))
    world = asleep([9] * awaited + [10] * (8 - awaited))
    world.switches[0].ports = 8
    foresight.foresee(world, 0, 10)
    assert asked == [expected]


@pytest.mark.parametrize(
    ("cost_s", "pause_s"), [(0.004, 0.1), (0.005, 0.1), (0.006, 0.12), (1.0, 20.0)]
)
def test_progress_takes_a_twentieth_of_a_run_at_most(cost_s: float, pause_s: float) -> None:
    assert next_progress_s(7, 7 + cost_s) == pytest.approx(7 + cost_s + pause_s)
