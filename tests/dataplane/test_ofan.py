"""Ofan: every (destination, class) walks its own IWRR schedule, before and after failures."""

from itertools import cycle, islice

import pytest

from controller.fabric_controller import LinkChange
from fattree.routes.forwarding import Forwarding
from fattree.routes.groups import NONE
from fattree.routes.wecmp import LinkState, agg_weights
from fattree.shape.topology import FatTree
from tests.dataplane.rig import FabricRig, Rig, ack, controller_of, data, rig, scenario
from tests.fattree.lookups import edge_weights, group_of

TREE = FatTree(4)
CORE_LINK, EDGE_LINK, OTHER_CORE_LINK = 16 + 1, 0, 16 + 5
FAILURES = [
    frozenset[int](),
    frozenset({CORE_LINK}),
    frozenset({EDGE_LINK}),
    frozenset({CORE_LINK, 9, OTHER_CORE_LINK}),
]


def host_under(tree: FatTree, switch: int, destination: int) -> int:
    """Return a host behind a destination edge, or at an agg a destination pod."""
    return destination * (tree.hosts_per_edge if switch < tree.edges else tree.hosts_per_pod)


def walk(state: Forwarding, switch: int, destination: int, kind: int) -> list[int]:
    """Return the ports of two rounds of a group's schedule, from the start of a class."""
    group = state.first_group[switch] + group_of(state, switch, destination)
    slots = state.schedule(switch, int(state.group_schedule[group])).tolist()
    start = int(state.group_start[group, kind])
    return [
        state.tree.uplink_port(switch, uplink)
        for uplink in islice(cycle(slots), start, start + 2 * len(slots))
    ]


def destinations(state: Forwarding, switch: int) -> list[int]:
    """Return the destinations that a switch has a path to."""
    count = state.tree.edges if switch < state.tree.edges else state.tree.pods
    return [d for d in range(count) if group_of(state, switch, d) != NONE]


@pytest.mark.parametrize("failed", FAILURES, ids=["none", "core link", "edge link", "three links"])
def test_ports_of_a_destination_and_class_are_its_schedule_on_every_switch(
    failed: frozenset[int],
) -> None:
    fabric = FabricRig(scenario("ofan"))
    fabric.apply(fabric.controller.on_event(0, LinkChange(down=failed)))
    state = fabric.controller.forwarding()
    for switch in range(2 * TREE.edges):
        for destination in destinations(state, switch):
            host = host_under(TREE, switch, destination)
            for kind, make in enumerate((data, ack)):
                expected = walk(state, switch, destination, kind)
                frame = make(TREE, 0 if host else 15, host)
                assert [fabric.rigs[switch].port_of(frame) for _ in expected] == expected, (
                    switch,
                    destination,
                    kind,
                )


@pytest.mark.parametrize("failed", FAILURES[1:], ids=["core link", "edge link", "three links"])
def test_schedules_hold_every_uplink_as_often_as_its_weight(failed: frozenset[int]) -> None:
    links = LinkState.without(TREE, failed)
    state = controller_of(scenario("ofan"), failed).forwarding()
    for switch in range(TREE.edges):
        for destination in destinations(state, switch):
            weights = edge_weights(TREE, links, switch, destination)
            slots = state.schedule(
                switch, int(state.group_schedule[state.first_group[switch] + destination])
            ).tolist()
            counts = [slots.count(uplink) for uplink in range(TREE.edge_uplinks)]
            assert [w * sum(counts) for w in weights] == [c * sum(weights) for c in counts]
    assert agg_weights(TREE, links).max() == 1


def test_a_weighted_schedule_is_interleaved() -> None:
    """Edge 0 loses 2 of the 4 cores above its first agg: weights 1, 2, 2, 2 in an order p: p, then
    p without the 1.
    """
    core_links = {16 * 8, 16 * 8 + 1}
    slots = controller_of(scenario("ofan", k=8), core_links).forwarding().schedule(0, 7).tolist()
    assert sorted(slots[:4]) == [0, 1, 2, 3]
    assert slots[4:] == [uplink for uplink in slots[:4] if uplink != 0]


def test_classes_do_not_share_a_pointer() -> None:
    bench = rig(scenario("ofan"), 0)
    ports = [bench.port_of(data(TREE, 0, 15)) for _ in range(3)]
    bench.port_of(ack(TREE, 0, 15))
    ports.append(bench.port_of(data(TREE, 0, 15)))
    assert ports[0] == ports[2] != ports[1] == ports[3]


def test_classes_start_half_a_schedule_apart() -> None:
    bench = rig(scenario("ofan"), 0)
    for host in (4, 8, 12, 14):
        assert bench.port_of(data(TREE, 0, host)) != bench.port_of(ack(TREE, 0, host))


def test_hosts_of_one_edge_share_a_pointer_and_edges_do_not() -> None:
    bench = rig(scenario("ofan"), 0)
    first = bench.port_of(data(TREE, 0, 14))
    bench.port_of(data(TREE, 1, 12))
    second = bench.port_of(data(TREE, 1, 15, label=9))
    assert {first, second} == {3, 4}


def test_an_agg_has_one_pointer_for_a_destination_pod() -> None:
    bench = rig(scenario("ofan"), TREE.edges)
    ports = [bench.port_of(data(TREE, 0, host)) for host in (12, 13, 14, 15)]
    assert ports[0] == ports[2] != ports[1] == ports[3]


def length_256(bench: Rig, total_length: int) -> bytes:
    """Return a data frame of an IPv4 total length."""
    return data(bench.tree, 0, 15, payload=total_length - 44)


@pytest.mark.parametrize(("total_length", "is_ack"), [(255, True), (256, False)])
def test_a_packet_below_256_bytes_is_an_ack(total_length: int, is_ack: bool) -> None:
    bench = rig(scenario("ofan"), 0)
    bench.port_of(length_256(bench, total_length))
    (used,) = [cell for cell, value in enumerate(bench.session.read_register("pointers")) if value]
    assert used % 2 == is_ack


def test_a_pointer_beyond_the_end_of_a_new_schedule_restarts_at_0() -> None:
    chosen = scenario("ofan", k=8)
    controller = controller_of(chosen)
    bench = rig(chosen, 0)
    controller.start()
    frame = data(chosen.tree, 0, 127)
    while bench.session.read_register("pointers")[2 * 31] != 4:
        bench.port_of(frame)
    bench.apply(controller.on_event(0, LinkChange(down=frozenset({0, 1}))))
    slots = controller.forwarding().schedule(0, 7).tolist()
    assert [bench.port_of(frame) for _ in slots] == [5 + uplink for uplink in slots]


def test_a_pointer_behind_the_last_slot_is_at_the_first_even_if_the_schedule_grows() -> None:
    chosen = scenario("ofan", k=8)
    controller, bench = controller_of(chosen), rig(chosen, 0)
    controller.start()
    frame = data(chosen.tree, 0, 127)
    last = controller.forwarding().schedule(0, 7).tolist()[-1]
    while bench.port_of(frame) != 5 + last:
        continue
    bench.apply(controller.on_event(0, LinkChange(down=frozenset({32 * 4}))))
    slots = controller.forwarding().schedule(0, 7).tolist()
    assert len(slots) == 15
    assert [bench.port_of(frame) for _ in slots] == [5 + uplink for uplink in slots]


def test_a_pointer_survives_a_change_of_schedule() -> None:
    chosen = scenario("ofan", k=8)
    controller, bench = controller_of(chosen), rig(chosen, 0)
    controller.start()
    frame = data(chosen.tree, 0, 127)
    for _ in range(9):
        bench.port_of(frame)
    position = bench.session.read_register("pointers")[2 * 31] - 1
    bench.apply(controller.on_event(0, LinkChange(down=frozenset({16 * 8 + 3}))))
    slots = controller.forwarding().schedule(0, 7).tolist()
    assert bench.port_of(frame) == 5 + slots[position]


def test_uplinks_that_do_not_reach_a_destination_edge_are_skipped_in_the_same_order() -> None:
    chosen = scenario("ofan", k=8)
    edge_31_agg_2 = 31 * 4 + 2
    controller, bench = controller_of(chosen), rig(chosen, 0)
    controller.start()
    whole = controller.forwarding().schedule(0, 7).tolist()
    bench.apply(controller.on_event(0, LinkChange(down=frozenset({edge_31_agg_2}))))
    kept = [5 + uplink for uplink in whole if uplink != 2]
    ports = [bench.port_of(data(chosen.tree, 0, 127)) for _ in range(6)]
    assert any(ports == list(islice(cycle(kept), start, start + 6)) for start in range(3))
    assert {bench.port_of(data(chosen.tree, 0, 123)) for _ in range(4)} == {5, 6, 7, 8}


def test_a_destination_without_a_path_is_dropped_and_comes_back() -> None:
    fabric = FabricRig(scenario("ofan"))
    cut = frozenset({7 * 2, 7 * 2 + 1})
    fabric.apply(fabric.controller.on_event(0, LinkChange(down=cut)))
    assert fabric.carry(0, data(TREE, 0, 15))[1] is None
    fabric.apply(fabric.controller.on_event(0, LinkChange(up=cut)))
    assert fabric.host_reached(fabric.carry(0, data(TREE, 0, 15))[0]) == 15


def test_southbound_links_into_an_edge_differ_by_at_most_the_pointers_that_feed_it() -> None:
    fabric = FabricRig(scenario("ofan", k=4))
    counts = {3: 0, 4: 0}
    for packet in range(101):
        for source in (0, 1, 5, 9, 11):
            hops, _ = fabric.carry(source, data(TREE, source, 14 + packet % 2))
            counts[3 + hops[-2][0] % 2] += 1
    assert abs(counts[3] - counts[4]) <= len({0, 2, 4, 5})
