"""Levels of consolidation: who shares a pointer.

Schedules, and the groups of other load balancers, stay as they are.
"""

import numpy as np
import pytest

from fattree.errors import ExperimentError
from fattree.experiment.model import LoadBalancer, Scenario
from fattree.policies import POLICIES
from fattree.routes.forwarding import Forwarding, forwarding
from fattree.routes.groups import LEVELS, NONE, OFAN, Consolidation
from fattree.routes.wecmp import LinkState
from fattree.shape.topology import FatTree
from tests.fattree.lookups import group_towards

TREE = FatTree(4)
ALL_UP = LinkState.without(TREE)
PLACES = [Consolidation(edge, agg) for edge in LEVELS for agg in LEVELS]


def state(levels: Consolidation, links: LinkState = ALL_UP, policy: str = "ofan") -> Forwarding:
    return forwarding(TREE, links, POLICIES[policy], 3, consolidation=levels)


def towards(table: Forwarding, switch: int) -> list[int]:
    return [group_towards(table, switch, host) for host in range(TREE.hosts)]


@pytest.mark.parametrize("levels", PLACES)
@pytest.mark.parametrize("switch", [0, 5, TREE.edges, TREE.edges + 6])
def test_hosts_share_a_pointer_iff_they_share_the_level(levels: Consolidation, switch: int) -> None:
    level = levels.edge if switch < TREE.edges else levels.agg
    size = {"host": 1, "edge": TREE.hosts_per_edge, "pod": TREE.hosts_per_pod}[level]
    groups = towards(state(levels), switch)
    for host, group in enumerate(groups):
        for other_host, other_group in enumerate(groups):
            if group != NONE != other_group:
                assert (group == other_group) == (host // size == other_host // size)


@pytest.mark.parametrize("levels", PLACES)
@pytest.mark.parametrize("failed", [(), (0,), (3, 17)])
def test_every_host_keeps_its_schedule(levels: Consolidation, failed: tuple[int, ...]) -> None:
    links = LinkState.without(TREE, frozenset(failed))
    usual, consolidated = state(OFAN, links), state(levels, links)
    for switch in range(2 * TREE.edges):
        for host in range(TREE.hosts):
            before, after = (
                group_towards(usual, switch, host),
                group_towards(consolidated, switch, host),
            )
            assert (before == NONE) == (after == NONE)
            if before != NONE:
                walked = [
                    table.schedule(
                        switch, int(table.group_schedule[table.groups(switch)[group]])
                    ).tolist()
                    for table, group in ((usual, before), (consolidated, after))
                ]
                assert walked[0] == walked[1]


def test_pointers_of_one_schedule_start_apart() -> None:
    table = state(Consolidation("host", "host"))
    starts = table.group_start[list(table.groups(0)), 0]
    assert len(set(starts[table.group_schedule[list(table.groups(0))] != NONE].tolist())) > 1


def test_other_load_balancers_have_no_such_levels() -> None:
    assert np.array_equal(
        state(Consolidation("host", "host"), policy="rsq").edge_group,
        state(OFAN, policy="rsq").edge_group,
    )


def test_pods_at_edges_need_an_order_per_pod() -> None:
    with pytest.raises(ExperimentError, match="per_pod"):
        LoadBalancer(schedule_orders="per_pointer", edge_pointers="pod")
    assert (
        Scenario(load_balancer=LoadBalancer(edge_pointers="pod")).load_balancer.edge_pointers
        == "pod"
    )
