"""Groups and schedules of every switch: proportional to weights, without unreachable uplinks,
independent of what failed.
"""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fattree.policies import POLICIES, Policy
from fattree.routes.forwarding import Forwarding, forwarding, hash_multiplier
from fattree.routes.groups import NONE
from fattree.routes.iwrr import interleave, simplify
from fattree.routes.wecmp import LinkState, agg_weights, pod_weights
from fattree.shape.topology import FatTree
from tests.fattree.brute_force import failing_trees, seeds
from tests.fattree.lookups import edge_weights, group_of

Failing = tuple[FatTree, frozenset[int]]
policies = st.sampled_from(sorted(POLICIES)).map(POLICIES.__getitem__)
orders = st.sampled_from(["per_pod", "per_pointer"])
K4 = FatTree(4)


def schedules_of(state: Forwarding, switch: int, destination: int) -> list[list[int]]:
    """Return the schedules of the group of a destination, none without a path."""
    local = group_of(state, switch, destination)
    first = NONE if local == NONE else int(state.group_schedule[state.first_group[switch] + local])
    return (
        []
        if first == NONE
        else [state.schedule(switch, first + order).tolist() for order in range(state.orders)]
    )


def wanted_weights(
    tree: FatTree, links: LinkState, policy: Policy, switch: int, destination: int
) -> np.ndarray:
    """Return the weights that a switch should use towards an edge (at edges) or a pod (at aggs),
    zeros for its own.
    """
    if switch < tree.edges:
        weights = edge_weights(tree, links, switch, destination) * (switch != destination)
    else:
        pod, position = tree.position(switch)
        weights = agg_weights(tree, links)[pod, position, destination] * (pod != destination)
    return weights if policy.weighted else (weights > 0).astype(np.int64)


@given(failing_trees(), policies, seeds, orders, st.data())
def test_slots_are_proportional_to_weights(
    case: Failing, policy: Policy, seed: int, kind: str, data: st.DataObject
) -> None:
    tree, failed = case
    links = LinkState.without(tree, failed)
    state = forwarding(tree, links, policy, seed, kind)  # type: ignore[arg-type]
    switch = data.draw(st.integers(0, 2 * tree.edges - 1))
    destination = data.draw(st.integers(0, (tree.edges if switch < tree.edges else tree.k) - 1))
    weights = wanted_weights(tree, links, policy, switch, destination)
    schedules = schedules_of(state, switch, destination)
    assert bool(schedules) == bool(weights.any())
    for schedule in schedules:
        counts = np.bincount(schedule, minlength=tree.edge_uplinks)
        assert (counts * weights.sum() == weights * len(schedule)).all()


@given(failing_trees(), seeds)
def test_ofan_walks_its_pods_schedule_and_skips_what_is_not_reached(
    case: Failing, seed: int
) -> None:
    tree, failed = case
    links = LinkState.without(tree, failed)
    state = forwarding(tree, links, POLICIES["ofan"], seed)
    weights = simplify(pod_weights(tree, links))
    intact = forwarding(tree, LinkState.without(tree), POLICIES["ofan"], seed)
    for edge in range(0, tree.edges, 2):
        for destination in range(tree.edges):
            pod = destination // tree.edges_per_pod
            order = intact.schedule(edge, pod).astype(np.int64)
            shared, _ = interleave(weights[edge, [pod]], order[None])
            expected = (
                []
                if destination == edge
                else [up for up in shared.tolist() if links.edge_agg[destination, up]]
            )
            assert schedules_of(state, edge, destination) == ([expected] if expected else [])


@given(failing_trees(), st.sampled_from(["flow", "simple_rr", "switch_pkt", "jsq"]), seeds)
def test_destinations_share_a_group_if_their_weights_are_proportional(
    case: Failing, slug: str, seed: int
) -> None:
    tree, failed = case
    links = LinkState.without(tree, failed)
    state = forwarding(tree, links, POLICIES[slug], seed)
    for switch in range(0, 2 * tree.edges, 3):
        destinations = range(tree.edges if switch < tree.edges else tree.k)
        rows = [
            tuple(
                simplify(wanted_weights(tree, links, POLICIES[slug], switch, d)[None])[0].tolist()
            )
            for d in destinations
        ]
        groups = [group_of(state, switch, destination) for destination in destinations]
        numbered = list(dict.fromkeys(row for row in rows if any(row)))
        assert groups == [numbered.index(row) if any(row) else NONE for row in rows]
        assert len(state.groups(switch)) == len(numbered)


@given(failing_trees(), policies, seeds)
def test_starts_lie_in_the_schedule_and_acks_start_half_a_schedule_later(
    case: Failing, policy: Policy, seed: int
) -> None:
    tree, failed = case
    state = forwarding(tree, LinkState.without(tree, failed), policy, seed)
    for switch in range(2 * tree.edges):
        for group in state.groups(switch):
            if state.group_schedule[group] != NONE:
                length = len(state.schedule(switch, int(state.group_schedule[group])))
                data, ack = state.group_start[group].tolist()
                assert 0 <= data < length
                assert ack == (data + length // 2) % length


@given(failing_trees(), seeds)
def test_the_order_of_ports_does_not_depend_on_failures(case: Failing, seed: int) -> None:
    """Without weights a schedule is the intact one minus the uplinks that are not reached."""
    tree, failed = case
    policy = POLICIES["ofan_fib"]
    intact = forwarding(tree, LinkState.without(tree), policy, seed)
    state = forwarding(tree, LinkState.without(tree, failed), policy, seed)
    for switch in range(2 * tree.edges):
        for destination in range(tree.edges if switch < tree.edges else tree.k):
            for schedule in schedules_of(state, switch, destination):
                (whole,) = schedules_of(intact, switch, destination)
                assert schedule == [uplink for uplink in whole if uplink in schedule]


def test_pointers_and_schedules_of_the_paper() -> None:
    """E - 1 pointers an edge and k - 1 an agg, over k shared schedules: 2,047, 63 and 64 at k = 64
    (C22), here at k = 16.
    """
    tree = FatTree(16)
    state = forwarding(tree, LinkState.without(tree), POLICIES["ofan"], 1)
    used = [
        (state.group_schedule[state.groups(switch)] != NONE).sum() for switch in (0, tree.edges)
    ]
    assert used == [tree.edges - 1, tree.k - 1]
    assert np.diff(state.first_schedule)[[0, tree.edges]].tolist() == [tree.k, tree.k]


@pytest.mark.parametrize(("is_used", "rows"), [(True, K4.k + 1), (False, K4.k)])
def test_an_edge_below_a_dead_link_has_a_schedule_of_its_own_if_packets_came_that_way(
    is_used: bool, rows: int
) -> None:
    edge, agg = K4.edges - 1, K4.agg(3, 0)
    to_cores = [K4.first_link(agg) + core for core in range(K4.agg_uplinks)]
    # Without its cores nothing comes down through the agg: then its dead link below changes
    # nothing, and the edge goes on with the schedule of its pod.
    failed = frozenset([K4.first_link(edge), *([] if is_used else to_cores)])
    state = forwarding(K4, LinkState.without(K4, failed), POLICIES["ofan"], 1)
    assert np.diff(state.first_schedule)[0] == rows
    assert schedules_of(state, 0, edge) == [[1]]


def test_reshuffled_schedules_are_sixteen_permutations() -> None:
    state = forwarding(FatTree(8), LinkState.without(FatTree(8)), POLICIES["switch_pkt"], 3)
    schedules = schedules_of(state, 0, 9)
    assert len(schedules) == 16
    assert {tuple(sorted(schedule)) for schedule in schedules} == {(0, 1, 2, 3)}
    assert len({tuple(schedule) for schedule in schedules}) > 8


@pytest.mark.parametrize("k", [2, 4, 8, 16, 32])
def test_reshuffled_orders_use_every_uplink_in_every_slot_alike(k: int) -> None:
    tree = FatTree(k)
    state = forwarding(tree, LinkState.without(tree), POLICIES["switch_pkt"], 3)
    slots = np.array(schedules_of(state, 0, tree.edges - 1))
    for slot in slots.T:
        assert (
            np.bincount(slot, minlength=tree.edge_uplinks).tolist()
            == [16 // tree.edge_uplinks] * tree.edge_uplinks
        )


def test_an_unshuffled_policy_keeps_the_plain_order() -> None:
    state = forwarding(K4, LinkState.without(K4), POLICIES["ofan_jsq_start"], 3)
    assert schedules_of(state, 0, 5) == [[0, 1]]


def test_orders_are_random_and_per_pod_orders_are_shared() -> None:
    tree = FatTree(8)
    per_pod = forwarding(tree, LinkState.without(tree), POLICIES["ofan"], 3)
    per_pointer = forwarding(tree, LinkState.without(tree), POLICIES["ofan"], 3, "per_pointer")
    shared = {tuple(schedules_of(per_pod, 0, destination)[0]) for destination in range(4, 8)}
    unshared = Counter(
        tuple(schedules_of(per_pointer, 0, destination)[0]) for destination in range(1, 32)
    )
    assert len(shared) == 1
    assert len(unshared) > 10


def test_switches_have_orders_of_their_own() -> None:
    tree = FatTree(8)
    state = forwarding(tree, LinkState.without(tree), POLICIES["simple_rr"], 3)
    edges, aggs = (
        [tuple(state.schedule(switch, 0).tolist()) for switch in tier]
        for tier in (range(32), range(32, 64))
    )
    assert min(len(set(edges)), len(set(aggs))) > 10
    assert edges != aggs


@pytest.mark.parametrize("slug", sorted(POLICIES))
def test_the_same_seed_gives_the_same_arrays(slug: str) -> None:
    links = LinkState.without(K4, frozenset({3, 17}))
    first, again, of_seed_6 = (forwarding(K4, links, POLICIES[slug], seed) for seed in (5, 5, 6))
    assert first.slots.tolist() == again.slots.tolist()
    assert (
        first.group_start.tolist() == again.group_start.tolist() != of_seed_6.group_start.tolist()
    )


@given(seeds, st.integers(0, 5_000))
def test_hash_multipliers_are_odd(seed: int, switch: int) -> None:
    assert hash_multiplier(seed, switch) % 2 == 1
    assert 0 < hash_multiplier(seed, switch) < 2**32
