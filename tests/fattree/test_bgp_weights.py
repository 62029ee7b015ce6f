"""BGP's weights against routers that speak it: announcements in rounds until none changes."""

from collections import Counter
from math import gcd

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fattree.policies import POLICIES
from fattree.routes.bgp import in_percent
from fattree.routes.forwarding import Forwarding, forwarding
from fattree.routes.groups import NONE
from fattree.routes.slow_links import SlowLink
from fattree.routes.wecmp import LinkState
from fattree.shape.topology import FatTree, Tier
from tests.fattree.brute_force import Hop, failing_trees, hops_from

FABRICS = st.sampled_from(
    [
        FatTree(4),
        FatTree(6),
        FatTree(4, planes=2),
        FatTree(pods=1, edges_per_pod=4, hosts_per_edge=2, aggs_per_pod=3, edge_agg_links=2),
        FatTree(
            pods=3, edges_per_pod=2, hosts_per_edge=2, aggs_per_pod=2, cores_per_agg=2,
            agg_core_links=2,
        ),
    ]
)  # fmt: skip


def as_number(tree: FatTree, switch: int) -> int:
    """Return a switch's AS (RFC 7938, section 5.2.1): cores share theirs, and a pod's aggs."""
    match tree.tier(switch):
        case Tier.EDGE:
            return 10_000 + switch
        case Tier.AGG:
            return 1 + tree.position(switch)[0]
        case Tier.CORE:
            return 0


def routes(tree: FatTree, failed: frozenset[int], edge: int) -> dict[int, dict[Hop, int]]:
    """Return each switch's next hops towards an edge's prefix, with the announced bandwidths."""
    # A route: (AS path, bandwidth). Rounds of announcements over all sessions until none changes.
    announced: dict[int, tuple[tuple[int, ...], int]] = {edge: ((as_number(tree, edge),), 1)}
    while True:
        hops: dict[int, dict[Hop, int]] = {}
        next_announced = {edge: announced[edge]}
        for switch in range(tree.switches):
            heard = {
                hop: announced[neighbour]
                for hop, neighbour in hops_from(tree, failed, switch)
                if neighbour in announced and as_number(tree, switch) not in announced[neighbour][0]
            }
            if switch == edge or not heard:
                continue

            shortest = min(len(path) for path, _ in heard.values())
            best = {hop: route for hop, route in heard.items() if len(route[0]) == shortest}
            hops[switch] = {hop: bandwidth for hop, (_, bandwidth) in best.items()}
            path = min(route[0] for route in best.values())
            next_announced[switch] = ((as_number(tree, switch), *path), len(best))

        if next_announced == announced:
            return hops

        announced = next_announced


def installed(state: Forwarding, switch: int, edge: int) -> dict[int, int]:
    """Return how often each uplink is in a switch's schedule towards an edge, reduced."""
    tree = state.tree
    group = (
        state.edge_group[switch, edge]
        if switch < tree.edges
        else state.agg_group[switch - tree.edges, edge // tree.edges_per_pod]
    )
    if group == NONE:
        return {}

    schedule = int(state.group_schedule[state.first_group[switch] + group])
    return reduced(Counter(state.schedule(switch, schedule).tolist()))


def reduced(weights: dict[int, int]) -> dict[int, int]:
    divisor = gcd(*weights.values())
    return {uplink: weight // divisor for uplink, weight in weights.items()}


def percents(hops: dict[Hop, int], tree: FatTree, switch: int) -> dict[int, int]:
    """Return a switch's weights as FRR computes them: 100 * bandwidth // sum, and at least 1."""
    total = sum(hops.values())
    first = tree.uplink_port(switch, 0)
    return reduced({port - first: max(1, 100 * bw // total) for (_, port), bw in hops.items()})


@settings(max_examples=60, deadline=None)
@given(failing_trees(FABRICS), st.data())
def test_schedules_under_bgp_are_those_of_routers_that_speak_it(
    case: tuple[FatTree, frozenset[int]], data: st.DataObject
) -> None:
    tree, failed = case
    edge = data.draw(st.integers(0, tree.edges - 1))
    # Pointers for hosts where there are parallel links regroup columns: here, for edges.
    state = forwarding(
        tree, LinkState.without(tree, failed), POLICIES["ofan"], seed=1, weights="bgp"
    )
    heard = routes(tree, failed, edge)

    for switch in range(tree.first_core):
        hops = heard.get(switch, {})
        is_north = all(port > tree.downlinks(switch) for _, port in hops)
        if switch < tree.edges and switch != edge:
            # An edge is never a way: with no agg in common it has no route at all.
            expected = percents(hops, tree, switch) if hops and is_north else {}
            assert installed(state, switch, edge) == expected, (switch, edge)
        elif hops and is_north and switch >= tree.edges:
            assert installed(state, switch, edge) == percents(hops, tree, switch), (switch, edge)


@pytest.mark.parametrize(
    ("bandwidths", "weights"),
    [
        # Read from the kernel beside FRR 8.4.4: speakers around a router, with these bandwidths.
        ([1, 2], [33, 66]),
        ([7, 7, 6], [35, 35, 30]),
        ([1, 98], [1, 98]),
        ([1, 99], [1, 99]),
        ([1, 100], [1, 99]),
        ([1, 150, 150], [1, 49, 49]),
        ([16] * 15 + [15], [6] * 15 + [5]),
        ([0, 0], [0, 0]),
    ],
)
def test_a_weight_is_whole_percents_and_at_least_1(
    bandwidths: list[int], weights: list[int]
) -> None:
    assert in_percent(np.array([bandwidths])).tolist() == [weights]


def test_a_slow_link_counts_as_a_full_link() -> None:
    tree = FatTree(4)
    slow = LinkState.without(tree, slow=frozenset({SlowLink(0, 0.25, 0.25)}))
    whole = LinkState.without(tree)
    under_bgp, at_full_rate = (
        forwarding(tree, links, POLICIES["ofan"], seed=1, weights="bgp") for links in (slow, whole)
    )

    assert under_bgp.slots.tolist() == at_full_rate.slots.tolist()
    exact = forwarding(tree, slow, POLICIES["ofan"], seed=1)
    assert exact.slots.tolist() != at_full_rate.slots.tolist()


def test_without_failures_and_parallel_links_both_kinds_of_weights_are_the_same() -> None:
    tree = FatTree(8)
    exact, bgp = (
        forwarding(tree, LinkState.without(tree), POLICIES["ofan"], seed=1, weights=weights)
        for weights in ("exact", "bgp")
    )

    assert exact.slots.tolist() == bgp.slots.tolist()
