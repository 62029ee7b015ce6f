"""Groups from a switch's own routes equal those of a planner that knows the whole fabric."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fattree.experiment.model import Fabric, Scenario
from fattree.policies import POLICIES
from fattree.routes.bgp import AnnouncedPaths, uplink_rows
from fattree.routes.forwarding import Drawn, Forwarding, scenario_forwarding
from fattree.routes.groups import NONE
from fattree.routes.own_routes import OwnRoutes
from fattree.routes.wecmp import LinkState, reach


def own(scenario: Scenario, failed: frozenset[int]) -> Forwarding:
    routes = OwnRoutes(scenario)
    links = LinkState.without(scenario.tree, failed)
    rows = uplink_rows(scenario.tree, links, AnnouncedPaths(scenario.tree, links))
    for switch, weights in enumerate(rows):
        routes.set(switch, weights)

    return routes.forwarding()


def central(scenario: Scenario, failed: frozenset[int], weights: str) -> Forwarding:
    controller = {"weights": weights}
    of_bgp = Scenario.model_validate({**scenario.model_dump(), "controller": controller})
    return scenario_forwarding(of_bgp, LinkState.without(scenario.tree, failed), Drawn())


def walks(state: Forwarding, switch: int) -> dict[int, tuple[list[list[int]], list[int]]]:
    """Return the schedules and the pointers' starts of each destination with a group."""
    tree = state.tree
    is_edge = switch < tree.edges
    groups = state.edge_group[switch] if is_edge else state.agg_group[switch - tree.edges]
    first = int(state.first_group[switch])
    return {
        destination: (
            [
                state.schedule(switch, int(state.group_schedule[first + group]) + order).tolist()
                for order in range(state.orders)
            ],
            state.group_start[first + group].tolist(),
        )
        for destination, group in enumerate(groups.tolist())
        if group != NONE
    }


def used(state: Forwarding) -> NDArray[np.bool_]:
    """Return (aggs, pods): whether the aggs of a position reach an edge of a pod.

    BGP gives an agg no route to another pod; a planner keeps a group, which no edge uses.
    """
    tree = state.tree
    reached = reach(tree, state.links)[:, :: tree.edge_agg_links]
    of_pods = reached.reshape(tree.pods, tree.edges_per_pod, tree.aggs_per_pod).any(axis=1)
    is_used: NDArray[np.bool_] = of_pods.T[np.arange(tree.aggs) % tree.aggs_per_pod]
    return is_used


def assert_same(state: Forwarding, expected: Forwarding) -> None:
    # Schedules may have other numbers: an edge alone in its pod shares no schedule with itself.
    assert np.array_equal(state.edge_group, expected.edge_group)
    assert np.array_equal(state.agg_group, np.where(used(expected), expected.agg_group, NONE))
    for switch in range(expected.tree.first_core):
        planned = walks(expected, switch)
        own_walks = walks(state, switch)
        assert own_walks == {pod: planned[pod] for pod in own_walks}, switch


POLICIES_OF_SWITCHES = ["ofan", "simple_rr", "switch_pkt", "jsq", "flow"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_switches_that_know_only_their_routes_have_the_schedules_of_bgps_weights(
    data: st.DataObject,
) -> None:
    policy = data.draw(st.sampled_from(POLICIES_OF_SWITCHES))
    fabric = data.draw(
        st.sampled_from([Fabric(k=4), Fabric(k=6), Fabric(k=8), Fabric(k=4, planes=2)])
    )
    scenario = Scenario(policy=policy, fabric=fabric, seed=data.draw(st.integers(0, 99)))
    links = st.integers(0, scenario.tree.links - 1)
    failed = data.draw(st.frozensets(links, max_size=scenario.tree.links // 3))

    expected = central(scenario, failed, "bgp")
    # Groups of next hops are numbered as they are first needed, so that one group less moves them.
    assume(scenario.scheme.per_destination or used(expected).all())

    assert_same(own(scenario, failed), expected)


@pytest.mark.parametrize("policy", ["ofan", "simple_rr", "switch_pkt"])
def test_after_each_single_failure_at_k_4_they_have_the_schedules_of_the_central_plan(
    policy: str,
) -> None:
    scenario = Scenario(policy=policy, fabric=Fabric(k=4))
    for link in range(scenario.tree.links):
        failed = frozenset({link})
        assert_same(own(scenario, failed), central(scenario, failed, "exact"))


def test_a_switch_without_routes_has_no_groups() -> None:
    scenario = Scenario(policy="ofan", fabric=Fabric(k=4))
    state = OwnRoutes(scenario).forwarding()
    assert (state.edge_group == -1).all() and (state.agg_group == -1).all()
    assert not len(state.slots) and POLICIES["ofan"].per_destination
