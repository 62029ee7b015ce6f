"""Simple RR and Switch Pkt: who shares a pointer, how it wraps, when the order is drawn again."""

from collections import Counter
from itertools import pairwise
from typing import Any

from controller.fabric_controller import LinkChange
from fattree.draws import Stream, component, mix
from fattree.policies import RESHUFFLE_ORDERS, RESHUFFLE_WRAPS
from tests.dataplane.rig import Rig, ack, controller_of, data, need_our_draws, rig, scenario

SHARED = {"rr_pointer": "shared"}


def schedules(bench: Rig) -> dict[int, list[int]]:
    """Return the ports of every schedule that a switch holds."""
    ports_by_slot: dict[int, dict[int, int]] = {}
    for entry in bench.entries("schedule"):
        schedule, slot = entry.key
        assert isinstance(schedule, int) and isinstance(slot, int)
        ports_by_slot.setdefault(schedule, {})[slot] = entry.arguments[0]
    return {
        schedule: [ports[slot] for slot in sorted(ports)]
        for schedule, ports in sorted(ports_by_slot.items())
    }


def test_all_destinations_share_one_pointer() -> None:
    bench = rig(scenario("simple_rr", k=8), 0)
    order = schedules(bench)[0]
    hosts = [4, 127, 20, 64, 5, 90, 33, 16]
    ports = [bench.port_of(data(bench.tree, 0, host)) for host in hosts]
    start = order.index(ports[0] or 0)
    assert ports == [order[(start + n) % 4] for n in range(8)]


def test_classes_have_pointers_of_their_own() -> None:
    bench = rig(scenario("simple_rr"), 0)
    ports = [bench.port_of(data(bench.tree, 0, 15)) for _ in range(2)]
    acks = [bench.port_of(ack(bench.tree, 0, 15)) for _ in range(2)]
    ports += [bench.port_of(data(bench.tree, 0, 15)) for _ in range(2)]
    assert ports[0] == ports[2] != ports[1] == ports[3]
    assert acks[0] != ports[0]


def test_classes_share_one_pointer_where_the_experiment_says_so() -> None:
    bench = rig(scenario("simple_rr", k=8, load_balancer=SHARED), 0)
    order = schedules(bench)[0]
    start = bench.entries("routes")[-1].arguments[3]
    frames = [ack(bench.tree, 0, 127), data(bench.tree, 0, 127), ack(bench.tree, 0, 64)]
    ports = [bench.port_of(frames[n % 3]) for n in range(9)]
    assert ports == [order[(start + n) % 4] for n in range(9)]


def test_a_shared_pointer_belongs_to_one_next_hop_group() -> None:
    chosen = scenario("simple_rr", k=8, load_balancer=SHARED)
    controller, bench = controller_of(chosen), rig(chosen, 0)
    controller.start()
    far_core_link = (32 + 28) * 4
    bench.apply(controller.on_event(0, LinkChange(down=frozenset({far_core_link}))))
    before = bench.port_of(data(bench.tree, 0, 64))
    for _ in range(3):
        bench.port_of(ack(bench.tree, 0, 127))
    order = schedules(bench)[0]
    assert bench.port_of(data(bench.tree, 0, 64)) == order[(order.index(before or 0) + 1) % 4]


def test_no_other_scheme_of_the_program_knows_the_option() -> None:
    need_our_draws()
    ports = []
    for options in ({}, SHARED):
        bench = rig(scenario("switch_pkt", k=8, load_balancer=options), 0)
        frames = [(ack if n % 3 else data)(bench.tree, 0, 127) for n in range(60)]
        ports.append([bench.port_of(frame) for frame in frames])
    assert ports[0] == ports[1]


def test_southbound_packets_do_not_move_the_pointer() -> None:
    bench = rig(scenario("simple_rr"), 0)
    before = bench.port_of(data(bench.tree, 0, 15))
    assert bench.port_of(data(bench.tree, 15, 1), port=3) == 2
    assert bench.port_of(data(bench.tree, 0, 15)) != before


def test_destinations_with_other_weights_get_a_pointer_of_their_own() -> None:
    chosen = scenario("simple_rr", k=8)
    controller, bench = controller_of(chosen), rig(chosen, 0)
    controller.start()
    far_core_link = (32 + 28) * 4
    bench.apply(controller.on_event(0, LinkChange(down=frozenset({far_core_link}))))
    groups = {
        entry.key[0]: entry.arguments[0]
        for entry in bench.entries("routes")
        if entry.action == "to_group"
    }
    pods: dict[Any, int] = {
        prefix: (prefix[0] >> 16) & 0xFF for prefix in groups if isinstance(prefix, tuple)
    }
    assert {groups[prefix] for prefix in groups if pods[prefix] == 7}.isdisjoint(
        {groups[p] for p in groups if pods[p] < 7}
    )
    assert [len(ports) for ports in schedules(bench).values()] == [4, 15]


def test_simple_rr_never_draws() -> None:
    bench = rig(scenario("simple_rr"), 0, random=lambda low, high: 1 // 0)
    assert [bench.port_of(data(bench.tree, 0, 15)) for _ in range(30)]


def draws(seed: int, switch: int, count: int) -> list[int]:
    """Return the orders that a switch draws."""
    return [int(mix(seed, component(Stream.SWITCH, switch), n)) >> 28 for n in range(count)]


def test_switch_pkt_walks_another_order_after_5_wraparounds() -> None:
    need_our_draws()
    bench = rig(scenario("switch_pkt", k=8, seed=5), 0)
    orders = schedules(bench)
    assert len(orders) == RESHUFFLE_ORDERS
    frame = data(bench.tree, 0, 127)
    start = bench.entries("routes")[-1].arguments[3]
    expected = []
    for drawn in draws(5, 0, 6):
        for _ in range(RESHUFFLE_WRAPS):
            expected += orders[drawn][start:]
            start = 0
    assert [bench.port_of(frame) for _ in expected] == expected


def test_switch_pkt_draws_once_per_order() -> None:
    counted: list[tuple[int, int]] = []

    def third(low: int, high: int) -> int:
        counted.append((low, high))
        return 3

    bench = rig(scenario("switch_pkt"), 0, random=third)
    start = bench.entries("routes")[-1].arguments[3]
    for _ in range(2 * RESHUFFLE_WRAPS - start):
        bench.port_of(data(bench.tree, 0, 15))
    assert counted == [(0, 15)]
    bench.port_of(data(bench.tree, 0, 15))
    assert counted == [(0, 15)] * 2


def test_switch_pkt_has_one_pointer_for_both_classes() -> None:
    need_our_draws()
    bench = rig(scenario("switch_pkt", k=8, seed=5), 0)
    order = schedules(bench)[draws(5, 0, 1)[0]]
    start = bench.entries("routes")[-1].arguments[3]
    ports = [bench.port_of((ack if n % 2 else data)(bench.tree, 0, 127)) for n in range(4)]
    assert ports == [order[(start + n) % 4] for n in range(4)]


def test_switch_pkt_uses_every_uplink_equally_within_a_round() -> None:
    bench = rig(scenario("switch_pkt", k=8), 33)
    ports = [bench.port_of(data(bench.tree, 0, 127)) for _ in range(400)]
    assert max(Counter(ports).values()) - min(Counter(ports).values()) <= 1
    assert (
        len({(a, b) for a, b in pairwise(ports)}) == 16
        or len({(a, b) for a, b in pairwise(ports)}) > 8
    )


def test_switch_pkt_orders_have_one_length_under_failures() -> None:
    chosen = scenario("switch_pkt", k=8)
    controller, bench = controller_of(chosen), rig(chosen, 0)
    controller.start()
    bench.apply(controller.on_event(0, LinkChange(down=frozenset({16 * 8, 3}))))
    ports_of = schedules(bench)
    groups = {
        entry.arguments[:3] for entry in bench.entries("routes") if entry.action == "to_group"
    }
    for _, first, length in groups:
        assert [len(ports_of[first + order]) for order in range(RESHUFFLE_ORDERS)] == [
            length
        ] * RESHUFFLE_ORDERS
