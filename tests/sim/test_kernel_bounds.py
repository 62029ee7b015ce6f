"""Marks, bins, ties and orders of the kernels: both sides of each bound, and each of equals.

Draws are those of the plain model's own generator, tie breaks are written out as lists.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fattree.experiment.model import (
    Collective,
    Fabric,
    FailureEvent,
    Failures,
    LoadBalancer,
    Loss,
    Scenario,
    Transport,
)
from sim.arrays.network import Network, build
from sim.kernels import lb, ready
from sim.kernels.events import upcoming
from sim.kernels.lists import append
from sim.kernels.ports import FAR, is_gone
from sim.kernels.state import ACK, DATA, LOST, MARKED
from sim.kernels.switches import (
    FEW,
    PORT_BITS,
    PORT_MASK,
    SLOT_BITS,
    TIME_BITS,
    gather,
    in_order,
    is_drawn,
    is_marked,
    most_held,
)
from tests.naive.draws import Purpose, number

# Its uplinks are its links 4 to 7, of group 1 for example.
SWITCH, FIRST_UPLINK, GROUP = 0, 4, 1
SEED = 11


def network(policy: str, **options: Any) -> Network:
    fabric = options.pop("fabric", Fabric(k=8))
    parts = {"load_balancer": LoadBalancer(), "collective": Collective(message_bytes=1)} | options
    return build(Scenario(policy=policy, seed=SEED, fabric=fabric, **parts))


def drawn(count: int) -> int:
    """Return the upper 16 bits of the switch's draw of a number."""
    return number(SEED, Purpose.SWITCH, SWITCH, count) >> 16


# Of 800,000 bytes.
@pytest.mark.parametrize(
    ("waiting", "reached"),
    [
        (0, 0),
        *(
            (first + more, number - (more < 0))
            for number, first in ((1, 40_000), (2, 80_000), (3, 160_000))
            for more in (-1, 0, 1)
        ),
    ],
)
def test_bins_begin_at_5_10_and_20_per_cent(waiting: int, reached: int) -> None:
    constants = network("switch_pkt_ar").world.constants
    assert lb.adaptive.queue_bin(constants, waiting) == reached


def test_bins_begin_at_the_first_whole_byte_of_their_share() -> None:
    # 4,158.45 and 8,316.9 and 16,633.8 bytes; marks begin above the second.
    constants = network("switch_pkt_ar", fabric=Fabric(k=4, queue_bytes=83_169)).world.constants
    assert (constants.threshold_1, constants.threshold_2, constants.threshold_3) == (
        4_159,
        8_317,
        16_634,
    )
    assert (
        network("host_pkt_ar", fabric=Fabric(k=4, queue_bytes=83_169)).world.constants.ecn_bytes
        == 8_316
    )


@pytest.mark.parametrize(
    ("policy", "weights", "waiting", "equals"),
    [
        ("jsq", [1, 1, 1, 1], [7, 8, 7, 7], [0, 2, 3]),
        ("jsq", [1, 1, 1, 1], [9, 8, 7, 7], [2, 3]),
        ("jsq", [1, 1, 1, 1], [8, 8, 8, 7], [3]),
        # An uplink that leads nowhere is none, however short.
        ("jsq", [0, 1, 1, 1], [0, 5, 6, 5], [1, 3]),
        # Bytes a weight: 300 at weight 3 are as 400 at weight 4.
        ("jsq", [3, 4, 4, 4], [300, 400, 900, 400], [0, 1, 3]),
        ("jsq", [3, 4, 4, 4], [299, 400, 400, 400], [0]),
        ("jsq", [3, 4, 4, 4], [301, 400, 900, 400], [1, 3]),
        ("jsq", [4, 3, 4, 4], [400, 300, 300, 300], [2, 3]),
        # Tickets: as many as weight, of the lowest bin.
        ("switch_pkt_ar", [1, 1, 1, 1], [0, 39_999, 40_000, 5], [0, 1, 3]),
        ("switch_pkt_ar", [1, 2, 2, 2], [0, 0, 400_000, 5], [0, 1, 1, 3, 3]),
        ("switch_pkt_ar", [0, 2, 1, 3], [0, 80_000, 79_999, 40_000], [2, 3, 3, 3]),
        ("switch_pkt_ar", [1, 2, 2, 1], [200_000, 160_000, 170_000, 799_999], [0, 1, 1, 2, 2, 3]),
    ],
)
def test_each_of_equals_is_taken_by_its_number(
    policy: str, weights: list[int], waiting: list[int], equals: list[int]
) -> None:
    built = network(policy)
    routes = built.routes[0].routes
    group = routes.group_table[routes.first_group[SWITCH] + GROUP]
    routes.weights[group.schedule] = weights
    built.world.links.occupancy[FIRST_UPLINK : FIRST_UPLINK + 4] = waiting

    packet = SimpleNamespace(hash=0)
    chosen = [
        int(lb.uplink(built.world, routes, SWITCH, GROUP, packet, DATA, 0)) for _ in range(40)
    ]
    # A packet takes its number, whether it decides or not.
    assert chosen == [equals[drawn(count) * len(equals) >> 16] for count in range(40)]
    assert set(chosen) == set(equals)
    assert built.world.switches[SWITCH].draws == 40


def test_one_bound_marks_data_that_find_more() -> None:
    world = network("host_pkt_ar").world
    assert world.constants.ecn_bytes == 80_000
    for waiting, expected in ((79_999, False), (80_000, False), (80_001, True)):
        assert is_marked(world, SWITCH, waiting, DATA) == expected
    # ACKs are not, and a marked packet is not marked again.
    assert not is_marked(world, SWITCH, 800_000, ACK)
    assert not is_marked(world, SWITCH, 800_000, DATA | MARKED)
    assert world.switches[SWITCH].draws == 0


def test_between_two_bounds_a_draw_below_the_chance_marks() -> None:
    world = network(
        "host_pkt_ar",
        transport=Transport(congestion="dcqcn"),
        load_balancer=LoadBalancer(ecn_percent=12.5),
    ).world
    constants = world.constants
    assert (constants.ecn_bytes, constants.ecn_full_bytes) == (100_000, 400_000)
    # At the lower bound nothing is drawn, above the upper one neither.
    assert not is_marked(world, SWITCH, 100_000, DATA)
    assert is_marked(world, SWITCH, 400_001, DATA)
    assert world.switches[SWITCH].draws == 0

    # A byte more, and the chance is below a 65,536th; at the upper bound it is 0.2, rounded down.
    assert not is_marked(world, SWITCH, 100_001, DATA)
    marks = sum(is_marked(world, SWITCH, 400_000, DATA) for _ in range(1_000))
    assert marks == sum(drawn(count) < 13_105 for count in range(1, 1_001))
    assert world.switches[SWITCH].draws == 1_001


def test_a_draw_as_large_as_the_chance_does_not_mark() -> None:
    world = network(
        "host_pkt_ar",
        transport=Transport(congestion="dcqcn"),
        load_balancer=LoadBalancer(ecn_percent=12.5),
    ).world
    slope = 0.2 / 300_000
    count = next(count for count in range(100) if 100 < drawn(count) < 13_000)
    # Some 23 bytes have each chance: the first with more than the draw marks.
    first = next(
        waiting
        for waiting in range(100_001, 400_001)
        if int((waiting - 100_000) * int(slope * 2**32) / 2**16) > drawn(count)
    )
    for waiting, expected in ((first - 1, False), (first, True)):
        world.switches[SWITCH].draws = count
        assert is_drawn(world, SWITCH, waiting) == expected


@pytest.mark.parametrize(
    ("alpha", "occupancy", "free", "limit"),
    [
        (1, 0, 1_000, 1_000),
        (1, 500, 1_000, 1_000),
        (0.5, 100, 1_001, 500),
        (4, 100, 1_000, 1_100),
        (4, 3_000, 1_000, 4_000),
        (4, 3_001, 1_000, 4_000),
        (1, 10, 0, 0),
    ],
)
def test_a_queue_holds_alpha_times_what_is_free_or_all_of_that(
    alpha: float, occupancy: int, free: int, limit: int
) -> None:
    world = SimpleNamespace(constants=SimpleNamespace(alpha=round(alpha * 2**16)))
    assert most_held(world, occupancy, free) == limit


def test_what_arrives_at_once_is_served_in_the_order_of_ports() -> None:
    world = network("ofan", fabric=Fabric(k=4)).world
    node = world.switches[SWITCH]
    ports = range(node.first_port, node.first_port + node.ports)
    for port in reversed(ports):
        link = world.links[world.inputs[port]]
        # The last packet arrives when the window is over, in the next window; the second is lost.
        for time_ps, status in ((1_000, DATA), (1_500, LOST), (2_000, DATA), (3_000, DATA)):
            slot = append(world.pool, link, 2, world.counters)
            world.pool.packets[slot].time_ps = time_ps
            world.pool.packets[slot].status = status
            world.wakes_ps[port] = 1_000

    keys, ends = np.zeros(99, dtype=np.int64), np.zeros(99, dtype=np.int64)
    count = gather(world, SWITCH, 1_000, end_ps=3_000, keys=keys, ends=ends)
    _, served = in_order(world, keys, count, np.zeros(99, np.int64), np.zeros(99, np.int32))
    entries = [(int(key) >> TIME_BITS, int(key) >> SLOT_BITS & PORT_MASK) for key in served[:count]]
    assert entries == [(time_ps, port) for time_ps in (0, 1_000) for port in range(node.ports)]


@pytest.mark.parametrize("count", [FEW - 1, FEW, FEW + 1])
def test_few_keys_and_many_have_one_order(count: int) -> None:
    world = SimpleNamespace(constants=SimpleNamespace(window_ps=500_640))
    keys = np.array(
        [(500_639 * (index % 2) << TIME_BITS) | (count - index) for index in range(count)],
        dtype=np.int64,
    )
    expected = sorted(keys.tolist())
    out, buckets = np.empty(count, dtype=np.int64), np.empty(2 * count, dtype=np.int32)
    assert in_order(world, keys, count, out, buckets)[1][:count].tolist() == expected


DEAD = FailureEvent(link="edge0_0-agg0_0", down_ns=100, up_ns=200)


@pytest.mark.parametrize("now_ps", [0, 99_999, 100_000, 199_999, 200_000])
@pytest.mark.parametrize(
    ("start_ps", "expected"),
    [
        (99_999, False),
        (100_000, True),
        (199_999, True),
        (200_000, False),
        (249_999, False),
        (250_000, True),
        (260_000, False),
    ],
)
def test_a_link_is_dead_from_its_failure_until_it_is_back(
    now_ps: int, start_ps: int, expected: bool
) -> None:
    if start_ps < now_ps:
        return

    again = DEAD.model_copy(update={"down_ns": 250, "up_ns": 260})
    world = network("ofan", fabric=Fabric(k=2), failures=Failures(events=(DEAD, again))).world
    assert bool(is_gone(world, 1, start_ps, now_ps)) == expected


def test_a_packet_is_lost_whose_draw_is_below_the_share() -> None:
    lossy = Failures(losses=(Loss(link="edge0_0-agg0_0", share=0.25),))
    world = network("ofan", fabric=Fabric(k=2), failures=lossy).world
    link, ledger = world.links[1], world.ledgers[1]
    assert ledger.unlucky == 2**30
    draw = number(SEED, Purpose.LOSS, 1, 0)
    link.data_packets = 1
    for share, expected in ((draw, False), (draw + 1, True)):
        ledger.unlucky = share
        assert bool(is_gone(world, 1, 0, 0)) == expected


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.data())
def test_flows_due_at_one_time_go_in_the_order_of_their_numbers(
    times: list[int], data: st.DataObject
) -> None:
    ready_ps = np.array(times, dtype=np.int64)
    heap, positions = np.zeros(len(times), dtype=np.int64), np.zeros(len(times), dtype=np.int64)
    for size, flow in enumerate(data.draw(st.permutations(range(len(times))))):
        heap[size], positions[flow] = flow, size
        ready.sift_up(heap[: size + 1], positions, ready_ps, flow)

    order = []
    for size in range(len(times), 0, -1):
        order.append(int(heap[0]))
        heap[0] = last = int(heap[size - 1])
        positions[last] = 0
        if size > 1:
            ready.sift_down(heap[: size - 1], positions, ready_ps, last)

    assert order == sorted(range(len(times)), key=lambda flow: (times[flow], flow))


def test_events_of_ports_come_by_time_then_kind_then_port() -> None:
    window = (500, 900)
    tree = np.full(8, FAR, dtype=np.int64)
    for kind, port, time_ps in (
        (upcoming.LEAVES, 3, 700),
        (upcoming.LEAVES, 2, 900),
        (upcoming.BEGINS, 0, 700),
        (upcoming.LEAVES, 1, 700),
    ):
        upcoming.put(tree, port, upcoming.entry(kind, port, time_ps, window))

    order = []
    while tree[upcoming.TOP] != FAR:
        event = int(tree[upcoming.TOP])
        kind = event >> PORT_BITS & upcoming.KIND_MASK
        order.append((event >> upcoming.EVENT_BITS, kind, event & PORT_MASK))
        upcoming.put(tree, event & PORT_MASK, FAR)

    # An event at the end of the window is the next window's.
    leaves, begins = upcoming.LEAVES, upcoming.BEGINS
    assert order == [(200, leaves, 1), (200, leaves, 3), (200, begins, 0)]


@pytest.mark.parametrize(("cell", "position"), [(0, 2), (1, 0), (4, 3), (5, 0)])
def test_a_pointer_begins_at_its_start_and_restarts_behind_a_shorter_schedule(
    cell: int, position: int
) -> None:
    assert lb.schedules.start_or_next(cell, 2, 4) == position
