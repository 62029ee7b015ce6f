"""A host without sockets: data and ACKs take turns, flows wait for flows, and strangers' frames are
refused.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from fattree.demand.flows import Flows, independent, offsets
from fattree.experiment.model import Fabric, Scenario, Transport
from fattree.routes.demand import Demand
from fattree.routes.wecmp import LinkState
from fattree.shape.addressing import switch_ip
from fattree.shape.topology import FatTree
from hostagent.build import endpoints, ends
from hostagent.endpoint import Endpoint, MisdeliveryError, StalePacketError
from hostagent.packets import AckFrames, DataFrames
from hostagent.source_routes import SourceRoutes, waypoint_addresses
from hostagent.transports.roce import parse
from hostagent.transports.state import NEVER

TREE = FatTree(4)
SCENARIO = Scenario(fabric=Fabric(k=4), transport=Transport(random_phases=False))
SACK = SCENARIO.model_copy(update={"transport": Transport(recovery="sack")})
HERE, THERE = 0, 15
between = partial(ends, TREE)


def flows(*rows: tuple[int, int, int], after: dict[int, list[int]] | None = None) -> Flows:
    """Return flows of (source, destination, packets); `after` says which wait for which."""
    source, destination, packets = np.array(rows, dtype=np.int64).T
    waits = [(after or {}).get(flow, []) for flow in range(len(rows))]
    plain = independent(
        source.copy(),
        destination.copy(),
        packets.copy(),
        np.full(len(rows), 4096),
        np.zeros(len(rows), dtype=np.int64),
    )
    ends_of = offsets(np.array([len(row) for row in waits]))
    waiting = np.array([flow for row in waits for flow in row], dtype=np.int64)
    return replace(plain, after_offset=ends_of, after=waiting)


def host(sent_flows: Flows, scenario: Scenario = SCENARIO) -> Endpoint:
    return endpoints(Demand.of(scenario, sent_flows), [HERE])[HERE]


def data_to_here(flow: int, psn: int) -> bytes:
    return DataFrames(between(THERE, HERE), flow, 4096).frame(1, psn)


def ack_to_here(flow: int, psn: int, received: int) -> bytes:
    return AckFrames(between(THERE, HERE), flow).frame(1, psn, False, received)


def sent(endpoint: Endpoint, now_ps: int) -> bool:
    """Return whether the host sends an ACK (True) or data (False) now."""
    departure = endpoint.send(now_ps)
    assert departure is not None
    return departure.is_ack


def test_data_and_acks_take_turns_while_both_wait_data_first() -> None:
    endpoint = host(flows((HERE, THERE, 9), (THERE, HERE, 9)))
    for psn in range(3):
        endpoint.receive(0, data_to_here(1, psn))
    times = [slot * SCENARIO.slot_ps for slot in range(6)]
    assert [sent(endpoint, time_ps) for time_ps in times] == [False, True, False, True, False, True]


def test_a_host_with_nothing_to_do_sleeps_until_its_next_packet_is_due() -> None:
    endpoint = host(flows((HERE, THERE, 2)))
    assert endpoint.wake_ps() == 0
    endpoint.send(0)
    assert endpoint.send(1) is None
    assert endpoint.wake_ps() == SCENARIO.slot_ps


def test_the_flow_that_is_due_first_goes_first_ties_by_flow() -> None:
    endpoint = host(flows((HERE, THERE, 3), (HERE, 14, 3)))
    order = [parse(endpoint.send(slot * SCENARIO.slot_ps).frame) for slot in range(4)]  # type: ignore[union-attr]
    assert [packet.flow for packet in order if packet] == [0, 1, 0, 1]


@pytest.mark.parametrize("recovery", ["erasure", "sack"])
def test_the_last_packet_is_as_long_as_what_is_left_and_frees_its_nic(recovery: str) -> None:
    left = 100
    sent_flows = replace(flows((HERE, THERE, 2), (HERE, 14, 1)), last_bytes=np.array([left, 4096]))
    options = {"recovery": recovery, "random_phases": False, "sharing": "active"}
    transport = Transport.model_validate(options)
    scenario = SCENARIO.model_copy(update={"transport": transport})
    endpoint = host(sent_flows, scenario)
    slot_ps = scenario.slot_ps
    lengths = []
    for number in range(3):
        departure = endpoint.send(number * slot_ps)
        assert departure is not None
        lengths.append(len(departure.frame) - 58)
        assert departure.less == 4096 - lengths[-1]

    # Of two flows that are ready, a packet each; then the first one's last.
    assert lengths == [4096, 4096, left]
    held_ps = scenario.tx_ps(left + 62 + 20)
    assert endpoint.kept_ps(False, 4096 - left) == held_ps
    if recovery == "erasure":
        # A repair symbol is as long as the longest of the message.
        after = [endpoint.send(number * slot_ps) for number in range(3, 6)]
        assert [len(packet_after.frame) - 58 for packet_after in after if packet_after] == [
            4096
        ] * len([*filter(None, after)])


def test_what_an_earlier_run_has_left_is_refused_and_not_acknowledged() -> None:
    sent_flows = flows((THERE, HERE, 4), (HERE, THERE, 4))
    endpoint = endpoints(Demand.of(SCENARIO, sent_flows), [HERE], run=7)[HERE]
    frames = between(THERE, HERE)
    endpoint.send(0)
    for stale in (
        DataFrames(frames, 0, 4096, run=6).frame(1, 0),
        AckFrames(frames, 1, run=6).frame(1, 0, False, 1),
    ):
        with pytest.raises(StalePacketError, match="of run 6 in run 7"):
            endpoint.receive(0, stale)
    assert endpoint.sender(1).acked == 0
    endpoint.receive(0, DataFrames(frames, 0, 4096, run=7).frame(1, 0))
    assert sent(endpoint, SCENARIO.slot_ps)


def test_an_ack_repeats_label_number_and_mark() -> None:
    endpoint = host(flows((THERE, HERE, 4)))
    marked = bytearray(DataFrames(between(THERE, HERE), 0, 4096).frame(4711, 3))
    marked[15] |= 0b11
    assert endpoint.receive(0, bytes(marked)) is None
    ack = endpoint.send(0)
    assert ack is not None
    packet = parse(ack.frame)
    assert packet is not None
    assert (packet.is_ack, packet.flow, packet.psn, packet.label, packet.marked) == (
        True,
        0,
        3,
        4711,
        True,
    )


def test_a_flow_starts_when_all_that_it_waits_for_are_complete_here() -> None:
    endpoint = host(flows((HERE, THERE, 1), (THERE, HERE, 1), (HERE, THERE, 1), after={2: [0, 1]}))
    endpoint.send(0)
    assert endpoint.receive(1000, ack_to_here(0, 0, 1)) == 0
    assert endpoint.started_ps(2) == NEVER
    assert endpoint.receive(2000, data_to_here(1, 0)) == 1
    assert endpoint.started_ps(2) == 2000


def test_a_computation_ends_after_its_time_and_starts_what_waits_for_it() -> None:
    sent_flows = flows((HERE, HERE, 0), (HERE, THERE, 1), after={1: [0]})
    sent_flows.compute_ps[0] = 5000
    endpoint = host(sent_flows)
    assert endpoint.timer_ps() == 5000
    assert endpoint.started_ps(1) == NEVER
    assert endpoint.elapse(5000) == [0]
    assert endpoint.started_ps(1) == 5000


def test_computations_end_at_their_instant_those_of_one_instant_in_order() -> None:
    sent_flows = flows(*[(HERE, HERE, 0)] * 4)
    sent_flows.compute_ps[:] = [5_000, 3_000, 5_000, 5_001]
    endpoint = host(sent_flows)
    assert endpoint.elapse(2_999) == []
    assert endpoint.elapse(5_000) == [1, 0, 2]
    assert endpoint.timer_ps() == 5_001


def test_an_ack_stands_for_those_before_it_that_were_lost() -> None:
    endpoint = host(flows((HERE, THERE, 5)), SACK)
    for slot in range(4):
        endpoint.send(slot * SCENARIO.slot_ps)
    endpoint.receive(SCENARIO.slot_ps * 4, ack_to_here(0, 2, 3))
    assert endpoint.sender(0).acked == 3


def test_sack_reports_the_lowest_missing_packet_and_all_beyond_it() -> None:
    endpoint = host(flows((THERE, HERE, 8)), SACK)
    for psn in (0, 2, 3, 5):
        endpoint.receive(0, data_to_here(0, psn))
    acks = [parse(endpoint.send(0).frame) for _ in range(4)]  # type: ignore[union-attr]
    assert [(ack.msn, ack.sacked) for ack in acks if ack] == [
        (1, 0),
        (1, 0b10),
        (1, 0b110),
        (1, 0b10110),
    ]


@pytest.mark.parametrize(
    "frame",
    [
        b"noise",
        DataFrames(between(THERE, 1), 0, 256).frame(1, 1),
        data_to_here(7, 0),
        ack_to_here(7, 0, 1),
    ],
    ids=["noise", "another host's", "unknown flow", "ACK of an unknown flow"],
)
def test_a_frame_that_is_not_its_own_is_an_error(frame: bytes) -> None:
    with pytest.raises(MisdeliveryError):
        host(flows((THERE, HERE, 4))).receive(0, frame)


def test_host_dr_wraps_packets_to_one_core_after_another() -> None:
    endpoint = host(flows((HERE, THERE, 9)), SCENARIO.model_copy(update={"policy": "host_dr"}))
    frames = [endpoint.send(slot * SCENARIO.slot_ps).frame for slot in range(4)]  # type: ignore[union-attr]
    cores = waypoint_addresses(
        TREE, LinkState.without(TREE), TREE.edge_of_host(HERE), TREE.edge_of_host(THERE)
    )
    outer = [int.from_bytes(frame[30:34], "big") for frame in frames]
    first = cores.index(outer[0])
    assert outer == [cores[(first + step) % 4] for step in range(4)]
    assert len(set(outer)) == 4


def test_host_dr_leaves_out_what_has_failed_once_routes_have_changed() -> None:
    routes = SourceRoutes(SCENARIO.model_copy(update={"policy": "host_dr"}), HERE)
    before = {routes.next_waypoint(THERE, False) for _ in range(8)}
    routes.converge(frozenset({TREE.links // 2}))
    after = {routes.next_waypoint(THERE, False) for _ in range(8)}
    assert len(before) == 4
    assert len(after) == 3
    assert after < before


def test_host_dr_needs_no_waypoint_under_one_edge_and_an_agg_inside_a_pod() -> None:
    routes = SourceRoutes(SCENARIO, HERE)
    assert routes.next_waypoint(1, False) is None
    aggs = {switch_ip(TREE, TREE.agg(0, position)) for position in range(TREE.aggs_per_pod)}
    assert {routes.next_waypoint(2, True) for _ in range(4)} == aggs
