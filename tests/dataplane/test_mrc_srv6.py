"""MRC over SRv6: hosts name the way in an IPv6 destination; switches act on one micro-segment each.

Their shifts and the packets' ways are read here from the bytes themselves (RFC 8200, RFC 9800).
"""

import struct

import pytest

from controller.entries import Change, Entry, Kind
from controller.fabric_controller import LinkChange
from fattree.shape.topology import FatTree, Tier
from hostagent.segment_routes import SegmentRoutes
from tests.dataplane.rig import (
    FabricRig,
    Rig,
    ack,
    changed,
    controller_of,
    data,
    internet_sum,
    rig,
    scenario,
)

TREE = FatTree(4)
CHOSEN = scenario("mrc_srv6")
HOP_LIMIT, BLOCK_AT, SEGMENTS_AT, INNER_AT = 21, 38, 42, 54
INNER_ECN = INNER_AT + 1


@pytest.fixture(scope="module")
def fabric() -> FabricRig:
    """Return a whole fabric."""
    return FabricRig(CHOSEN)


def wrapped(frame: bytes, source: int, destination: int, label: int) -> bytes:
    """Return a frame as its host sends it."""
    return SegmentRoutes(TREE, source).routed(frame, destination, label)


def segments(frame: bytes) -> list[int]:
    """Return the micro-segments of a frame's destination, without the zeros behind them."""
    fields = list(struct.unpack_from(">6H", frame, SEGMENTS_AT))
    return fields[: len(fields) - fields[::-1].index(next(filter(None, fields[::-1]), 0))]


def edge() -> Rig:
    """Return the first edge."""
    return rig(CHOSEN, 0)


def up(label: int = 0) -> bytes:
    """Return a packet that leaves the first pod."""
    return wrapped(data(TREE, 0, 15, label), 0, 15, label)


@pytest.mark.parametrize("make", [data, ack])
@pytest.mark.parametrize("label", range(8))
def test_labels_in_a_row_take_all_paths_in_turn(
    fabric: FabricRig, label: int, make: object
) -> None:
    build = data if make is data else ack
    frame = build(TREE, 1, 14, label)
    hops, arrived = fabric.carry(1, wrapped(frame, 1, 14, label))
    tiers = [TREE.tier(switch) for switch, _ in hops]
    assert tiers == [Tier.EDGE, Tier.AGG, Tier.CORE, Tier.AGG, Tier.EDGE]
    assert [hops[0][1], hops[1][1]] == [3 + label % 2, 3 + label // 2 % 2]
    # Only where the outer header ends does the inner one count.
    assert arrived == changed(frame, 22, bytes([frame[22] - 1]))


@pytest.mark.parametrize("label", [0, 1])
def test_inside_a_pod_three_segments_are_enough(fabric: FabricRig, label: int) -> None:
    frame = wrapped(data(TREE, 0, 3, label), 0, 3, label)
    assert len(segments(frame)) == 3
    hops, arrived = fabric.carry(0, frame)
    assert [switch for switch, _ in hops] == [0, TREE.agg(0, label), 1]
    assert arrived is not None and fabric.host_reached(hops) == 3


def test_under_one_edge_nothing_is_put_in_front(fabric: FabricRig) -> None:
    frame = data(TREE, 0, 1)
    assert wrapped(frame, 0, 1, 5) == frame
    assert fabric.carry(0, frame)[0] == [(0, 2)]


def test_a_switch_acts_on_the_first_segment_and_moves_the_others_up() -> None:
    frame = up()
    sent = edge().through(frame)
    assert sent is not None and sent[0] == 3
    assert segments(sent[1]) == segments(frame)[1:]
    assert sent[1][HOP_LIMIT] == frame[HOP_LIMIT] - 1
    same = [*range(HOP_LIMIT), *range(HOP_LIMIT + 1, SEGMENTS_AT), *range(INNER_AT, len(frame))]
    assert [sent[1][index] for index in same] == [frame[index] for index in same]


def test_all_six_segments_move() -> None:
    frame = bytearray(up())
    struct.pack_into(">5H", frame, SEGMENTS_AT + 2, 0x1111, 0x2222, 0x3333, 0x4444, 0x5555)
    sent = edge().through(bytes(frame))
    assert sent is not None
    moved = struct.unpack_from(">6H", sent[1], SEGMENTS_AT)
    assert moved == (0x1111, 0x2222, 0x3333, 0x4444, 0x5555, 0)


@pytest.mark.parametrize(("index", "value"), [(BLOCK_AT, 0x20), (SEGMENTS_AT, 0xD0)])
def test_what_is_no_segment_of_the_switch_is_dropped(index: int, value: int) -> None:
    frame = bytearray(up())
    frame[index] = value
    assert edge().through(bytes(frame)) is None


@pytest.mark.parametrize(("limit", "passes"), [(2, True), (1, False), (0, False)])
def test_the_hop_limit_counts_on_the_way(limit: int, passes: bool) -> None:
    frame = bytearray(up())
    frame[HOP_LIMIT] = limit
    assert (edge().through(bytes(frame)) is not None) == passes


def last(outer: int, inner: int) -> bytes:
    """Return a packet with these ECN codepoints where its outer header is to be taken off."""
    frame = changed(data(TREE, 15, 0), 15, bytes([inner]))
    packet = bytearray(wrapped(frame, 15, 0, 0))
    struct.pack_into(">6H", packet, SEGMENTS_AT, 0xF000, 0, 0, 0, 0, 0)
    packet[15] = outer << 4
    return bytes(packet)


@pytest.mark.parametrize(
    ("outer", "inner", "delivered"),
    [(3, 2, 3), (3, 1, 3), (2, 2, 2), (2, 3, 3), (0, 2, 2), (3, 0, None)],
)
def test_marks_survive_where_the_outer_header_ends(
    outer: int, inner: int, delivered: int | None
) -> None:
    sent = edge().through(last(outer, inner), port=3)
    assert (None if sent is None else sent[1][15]) == delivered
    if sent:
        assert sent[0] == 1 and sent[1][12:14] == b"\x08\x00"
        assert internet_sum(sent[1][14:34]) == 0xFFFF


def test_marks_are_made_in_the_outer_header() -> None:
    bench = rig(scenario("mrc_srv6", load_balancer={"ecn_percent": 1}), 0)
    for _ in range(4):
        bench.offer(up(), length=4158)
    marks = [frame[15] >> 4 & 3 for _, frame in (bench.leave() for _ in range(4))]
    assert marks == [2, 2, 3, 3]
    bench.offer(up(), length=100_000)
    bench.offer(up(), length=4158)
    bench.leave()
    assert bench.leave()[1][INNER_ECN] & 3 == 2


def test_acks_are_never_marked() -> None:
    bench = rig(scenario("mrc_srv6", load_balancer={"ecn_percent": 1}), 0)
    bench.offer(up(), length=100_000)
    # Even where they could be.
    bench.offer(wrapped(changed(ack(TREE, 0, 15), 15, b"\x02"), 0, 15, 0))
    assert bench.leave(1)[1][15] == 0x20


def test_nothing_changes_when_links_fail() -> None:
    bench = edge()
    controller = controller_of(CHOSEN)
    controller.start()
    steps = list(controller.on_event(0, LinkChange(down=frozenset({0}))))
    assert not any(step.changes for step in steps)
    assert bench.port_of(up()) == 3


def test_without_segments_nothing_goes_up(fabric: FabricRig) -> None:
    assert fabric.carry(0, data(TREE, 0, 15)) == ([], None)


def test_a_group_leads_nowhere() -> None:
    bench = edge()
    to_group = Entry("routes", ((10 << 24, 8),), "to_group", (0, 0, 1, 0, 0))
    bench.session.write((Change(Kind.INSERT, to_group),))
    assert bench.port_of(data(TREE, 0, 15)) is None


@pytest.mark.parametrize("length", [14, 20, 53, 54, 60, 73])
def test_truncated_packets_are_dropped(length: int) -> None:
    assert edge().through(up()[:length]) is None


def test_other_programs_know_no_segments() -> None:
    assert rig(scenario("ofan"), 0).through(up()) is None
