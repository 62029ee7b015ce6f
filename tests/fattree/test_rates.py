"""rho_max against loads counted flow by flow and path by path (appendix A)."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fattree.demand.flows import Flows, Message, independent
from fattree.demand.matrices import all_to_all, derangement, ring, uniform
from fattree.routes.rates import rho_max
from fattree.routes.stranded import cut_off
from fattree.routes.wecmp import LinkState
from fattree.shape.addressing import link_named
from fattree.shape.topology import FatTree
from tests.fattree.brute_force import failing_trees, loads, seeds

K4, K8 = FatTree(4), FatTree(8)
ONE = Message(1, 4096)
Failing = tuple[FatTree, frozenset[int]]


def counted(tree: FatTree, failed: frozenset[int], flows: Flows) -> Fraction:
    """Return 1 / F for independent flows, each at its share of its host."""
    share = np.bincount(flows.source, minlength=tree.hosts)
    ends = zip(flows.source.tolist(), flows.destination.tolist(), strict=True)
    rated = [
        (a // tree.hosts_per_edge, b // tree.hosts_per_edge, Fraction(1, int(share[a])))
        for a, b in ends
    ]
    return (
        min(Fraction(1), 1 / max([Fraction(1), *loads(tree, failed, rated).values()]))
        if failed
        else Fraction(1)
    )


def surviving(tree: FatTree, failed: frozenset[int], flows: Flows) -> Flows:
    """Return the flows that have a path."""
    kept = np.setdiff1d(
        np.arange(len(flows)), cut_off(tree, LinkState.without(tree, failed), flows)
    )
    return independent(
        flows.source[kept],
        flows.destination[kept],
        flows.packets[kept],
        flows.last_bytes[kept],
        flows.start_ps[kept],
    )


@settings(max_examples=50)
@given(failing_trees(), seeds)
def test_permutations_agree_with_counting(case: Failing, seed: int) -> None:
    tree, failed = case
    flows = surviving(
        tree, failed, uniform(np.arange(tree.hosts), derangement(seed, tree.hosts), ONE)
    )
    assert rho_max(tree, LinkState.without(tree, failed), flows) == counted(tree, failed, flows)


@given(
    failing_trees(st.just(K4)),
    st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), min_size=1, max_size=20),
)
def test_any_flows_agree_with_counting(case: Failing, ends: list[tuple[int, int]]) -> None:
    tree, failed = case
    source, destination = np.array(
        [(a, b) if a != b else (a, (b + 1) % 16) for a, b in ends], dtype=np.int64
    ).T
    flows = surviving(tree, failed, uniform(source, destination, ONE))
    assert rho_max(tree, LinkState.without(tree, failed), flows) == counted(tree, failed, flows)


@settings(max_examples=15)
@given(failing_trees(st.just(K4)))
def test_all_to_all_agrees_with_counting(case: Failing) -> None:
    tree, failed = case
    flows = surviving(tree, failed, uniform(*all_to_all(tree.hosts), ONE))
    assert rho_max(tree, LinkState.without(tree, failed), flows) == counted(tree, failed, flows)


def test_a_pair_of_edges_with_half_its_uplinks_left_runs_at_half_rate() -> None:
    """Two hosts of edge0_0 send to pod 1 through the one agg that is left: F = 2."""
    failed = frozenset({link_named(K4, "edge0_0-agg0_0")})
    flows = uniform(np.array([0, 1]), np.array([4, 6]), ONE)
    assert rho_max(K4, LinkState.without(K4, failed), flows) == Fraction(1, 2)


def test_a_core_link_carries_only_what_can_reach_its_destination() -> None:
    """With agg0_1 out of reach, three flows can only cross agg0_0-core0_0 and a fourth only
    agg0_0-core0_1.
    """
    names = ["edge0_0-agg0_1", "edge0_1-agg0_1", "agg1_0-core0_1", "agg2_0-core0_0"]
    failed = frozenset(link_named(K4, name) for name in names)
    flows = uniform(np.array([0, 1, 2, 3]), np.array([4, 5, 6, 8]), ONE)
    assert (
        rho_max(K4, LinkState.without(K4, failed), flows)
        == Fraction(1, 3)
        == counted(K4, failed, flows)
    )


def test_a_spare_link_costs_nothing() -> None:
    failed = frozenset({link_named(K4, "edge0_0-agg0_0")})
    assert (
        rho_max(K4, LinkState.without(K4, failed), uniform(np.array([0]), np.array([4]), ONE)) == 1
    )


def test_without_failures_hosts_send_at_line_rate() -> None:
    """Even where many send to one edge: congestion is not a failure."""
    flows = uniform(np.array([0, 2, 4, 6]), np.array([8, 8, 8, 8]), ONE)
    assert rho_max(K4, LinkState.without(K4), flows) == 1


def test_steps_of_a_ring_do_not_add_up() -> None:
    failed = frozenset({link_named(K8, "edge0_0-agg0_0"), link_named(K8, "agg1_1-core1_0")})
    one_step, whole = (
        rho_max(K8, LinkState.without(K8, failed), ring(128, steps, ONE)) for steps in (1, None)
    )
    assert one_step == whole


@pytest.mark.parametrize("parts", [2, 4])
def test_subflows_share_their_hosts_rate(parts: int) -> None:
    failed = frozenset({link_named(K4, "edge0_0-agg0_0")})
    flows = uniform(np.repeat([0, 1], parts), np.repeat([4, 6], parts), ONE)
    assert rho_max(K4, LinkState.without(K4, failed), flows) == Fraction(1, 2)
