"""Slow links: the times of rates, the rates that routes know, and the weights of paths."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fattree.demand import traffic
from fattree.errors import FailureError
from fattree.experiment.model import Degraded, Fabric, FailureEvent, Failures, Scenario
from fattree.policies import POLICIES
from fattree.routes.failures import RouteChange, timeline
from fattree.routes.forwarding import forwarding
from fattree.routes.slow_links import Pace, RateChange, SlowLink, after, paces, rate_changes
from fattree.routes.waypoints import waypoints
from fattree.routes.wecmp import MOST_WEIGHT, LinkState, Paths, agg_weights, eighths, small
from fattree.shape.addressing import link_name
from fattree.shape.topology import FatTree
from tests.fattree.brute_force import failing_trees, link_at, paths

K4 = FatTree(4)
CORE_LINK = 16
NAME = link_name(K4, CORE_LINK)


def scenario(*degraded: Degraded, **failures: Any) -> Scenario:
    return Scenario(fabric=Fabric(k=4), failures=Failures(degraded=degraded, **failures))


def test_where_entries_meet_the_slowest_counts() -> None:
    case = scenario(
        Degraded(link=NAME, rate=0.5, at_ns=1, until_ns=4),
        Degraded(link=NAME, rate=0.25, direction="up", at_ns=2, until_ns=3),
    )
    assert paces(case).of_links == {
        (CORE_LINK, True): (Pace(1000, 0.5), Pace(2000, 0.25), Pace(3000, 0.5), Pace(4000, 1)),
        (CORE_LINK, False): (Pace(1000, 0.5), Pace(4000, 1)),
    }
    assert rate_changes(case) == tuple(
        RateChange(time_ps, frozenset({SlowLink(CORE_LINK, up, down)}))
        for time_ps, up, down in (
            (1000, 0.5, 0.5),
            (2000, 0.25, 0.5),
            (3000, 0.5, 0.5),
            (4000, 1, 1),
        )
    )


@pytest.mark.parametrize(
    ("degraded", "message"),
    [
        (Degraded(link=NAME, rate=0.5, at_ns=5, until_ns=5), "until 5 ns, but only from 5 ns on"),
        (Degraded(host="h0_0_0", rate=0.5, at_ns=5), "h0_0_0 means a host's link"),
        (Degraded(switch="edge0_0", rate=0.5, until_ns=5), "leave out at_ns and until_ns"),
    ],
)
def test_what_makes_no_sense_is_refused(degraded: Degraded, message: str) -> None:
    with pytest.raises(FailureError, match=message):
        paces(scenario(degraded))


def test_routes_learn_of_slow_and_of_dead_links_after_g() -> None:
    case = scenario(
        Degraded(link=NAME, rate=0.5, at_ns=1, until_ns=3),
        events=(FailureEvent(link="edge0_0-agg0_0", down_ns=2),),
        convergence_rtt=1,
    )
    line = timeline(case, traffic.flows(case))
    slow = frozenset({SlowLink(CORE_LINK, 0.5, 0.5)})
    delay_ps = case.zero_load_rtt_ps
    assert line.routes == (
        RouteChange(1000 + delay_ps, frozenset(), slow),
        RouteChange(2000 + delay_ps, frozenset({0}), slow),
        RouteChange(3000 + delay_ps, frozenset({0}), frozenset()),
    )


def test_with_no_delay_the_first_routes_know_what_is_slow_from_the_start() -> None:
    case = scenario(Degraded(link=NAME, rate=0.5))
    line = timeline(case, traffic.flows(case))
    assert (line.first_slow, line.routes) == (frozenset({SlowLink(CORE_LINK, 0.5, 0.5)}), ())
    never = case.model_copy(
        update={"failures": case.failures.model_copy(update={"convergence_rtt": float("inf")})}
    )
    line = timeline(never, traffic.flows(never))
    assert (line.first_slow, line.routes, line.rates[0].time_ps) == (frozenset(), (), 0)


def test_after_a_change_only_slow_links_are_left() -> None:
    slow = frozenset({SlowLink(1, 0.5, 1), SlowLink(2, 0.5, 0.5)})
    assert after(slow, {SlowLink(1), SlowLink(3, 1, 0.1)}) == {
        SlowLink(2, 0.5, 0.5),
        SlowLink(3, 1, 0.1),
    }


@pytest.mark.parametrize(
    ("share", "units"),
    [
        (0.25, 2),
        (0.3, 2),
        (0.32, 3),
        (0.001, 1),
        # Halves are rounded up: of 3/16 and 15/16 exactly, and not of a little less.
        (0.1874, 1),
        (0.1875, 2),
        (0.9374, 7),
        (0.9375, 8),
    ],
)
def test_shares_are_eighths_rounded_and_never_nothing(share: float, units: int) -> None:
    assert eighths(share) == units


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([64, 63], [64, 63]),
        ([65, 64], [33, 32]),
        ([65, 1], [33, 1]),
        # Divided first: 64 and 1; then 65 and 1, halved.
        ([128, 2], [64, 1]),
        ([130, 2], [33, 1]),
        ([129, 128], [33, 32]),
        ([65, 0], [1, 0]),
        ([65, 64, 0], [33, 32, 0]),
        ([0, 0], [0, 0]),
    ],
)
def test_weights_above_64_are_halved_rounding_up(row: list[int], expected: list[int]) -> None:
    assert small(np.array([row])).tolist() == [expected]


@pytest.mark.parametrize(
    ("down", "rates", "both"),
    [
        ((), (1, 0.1), 1),
        ((), (0.1, 0.5), 1),
        ((), (0.5, 0.25), 2),
        ((0,), (1, 0.5), 4),
        ((1,), (0.5, 1), 4),
        ((0, 1), (0.5, 0.5), 0),
    ],
)
def test_of_parallel_links_each_counts_as_the_slowest_that_is_up(
    down: tuple[int, ...], rates: tuple[float, float], both: int
) -> None:
    tree = Fabric(
        pods=2,
        edges_per_pod=2,
        hosts_per_edge=2,
        aggs_per_pod=2,
        cores_per_agg=2,
        agg_core_links=2,
    ).tree
    first = tree.edge_links
    slow = frozenset(SlowLink(first + number, 1, rate) for number, rate in enumerate(rates))
    links = LinkState.without(tree, frozenset(first + number for number in down), slow)
    assert links.descents(tree)[1].ravel()[:4].tolist() == [both, both, 8, 8]


def test_what_loses_next_to_nothing_is_no_news() -> None:
    assert LinkState.without(K4, frozenset(), frozenset({SlowLink(3, 0.95, 0.99)})).is_whole


SHARES = st.sampled_from((1, 0.25, 0.5, 0.1, 0.8))


@given(failing_trees(), st.data())
def test_an_uplink_weighs_what_its_paths_carry(
    case: tuple[FatTree, frozenset[int]], data: st.DataObject
) -> None:
    tree, failed = case
    chosen = data.draw(st.sets(st.integers(0, tree.links - 1), min_size=1, max_size=6))
    shares = {link: (data.draw(SHARES), data.draw(SHARES)) for link in chosen}
    slow = frozenset(SlowLink(link, *both) for link, both in shares.items())
    links = LinkState.without(tree, failed, slow)
    ends = [data.draw(st.integers(0, tree.edges - 1)) for _ in range(2)]
    if ends[0] == ends[1]:
        return

    def carried(switch: int, port: int) -> int:
        link = link_at(tree)[switch, port]
        up, down = shares.get(link, (1, 1))
        return eighths(up if port > tree.downlinks(switch) else down) if links.units > 1 else 1

    expected = [0] * tree.edge_uplinks
    for path in paths(tree, failed, *ends):
        expected[path[0][1] - tree.uplink_port(ends[0], 0)] += min(carried(*hop) for hop in path)

    link_paths = Paths(tree, links)
    assert link_paths.to_edges(ends[0], np.array(ends[1:]))[0].tolist() == expected
    # A path that only the last link limits has another weight than towards the pod.
    to_pod = link_paths.to_pods()[ends[0], ends[1] // tree.edges_per_pod] * links.edge_agg[ends[1]]
    if to_pod.tolist() != expected:
        assert ends[1] in link_paths.apart


@pytest.mark.parametrize("failed", [False, True])
def test_what_comes_down_on_parallel_links_is_as_slow_as_the_slowest_that_is_up(
    failed: bool,
) -> None:
    tree = replace(K4, edge_agg_links=2, agg_core_links=2)
    # Of each first bundle, one link is slow down and the other one up.
    firsts = (0, tree.edge_links)
    slow = frozenset(
        slow_link
        for link in firsts
        for slow_link in (SlowLink(link, down=0.25), SlowLink(link + 1, up=0.5))
    )
    links = LinkState.without(tree, frozenset(firsts) if failed else frozenset(), slow)
    up = [0, 4] if failed else [8, 4]
    down = [8, 8] if failed else [2, 2]
    for ascent, descent in zip(links.ascents(tree), links.descents(tree), strict=True):
        assert ascent[0].tolist() == [*up, 8, 8]
        assert descent[0].tolist() == [*down, 8, 8]


@given(st.lists(st.lists(st.integers(0, 4096), min_size=3, max_size=3), min_size=1, max_size=4))
def test_small_weights_are_in_proportion(rows: list[list[int]]) -> None:
    weights = np.array(rows)
    smaller = small(weights)
    assert smaller.max() <= MOST_WEIGHT
    assert ((smaller > 0) == (weights > 0)).all()
    largest = weights.max(axis=1, keepdims=True)
    exact = weights / np.maximum(largest, 1)
    shown = smaller / np.maximum(smaller.max(axis=1, keepdims=True), 1)
    assert np.abs(exact - shown).max() < 1.5 / (MOST_WEIGHT // 2)


def test_a_core_link_at_a_quarter_is_a_quarter_of_an_agg_and_a_sixteenth_less_of_an_edge() -> None:
    tree = FatTree(8)
    first = tree.edge_links
    links = LinkState.without(tree, frozenset(), frozenset({SlowLink(first, 0.25, 0.25)}))
    assert small(agg_weights(tree, links))[0, 0, 1].tolist() == [1, 4, 4, 4]
    table = forwarding(tree, links, POLICIES["ofan"], seed=1)
    far = int(table.group_schedule[table.first_group[0] + table.edge_group[0, 4]])
    assert np.bincount(table.schedule(0, far)).tolist() == [13, 16, 16, 16]
    near = int(table.group_schedule[table.first_group[0] + table.edge_group[0, 1]])
    assert np.bincount(table.schedule(0, near)).tolist() == [1, 1, 1, 1]
    # Reachability alone does not see it.
    table = forwarding(tree, links, POLICIES["ofan_fib"], seed=1)
    assert np.bincount(table.schedule(0, far)).tolist() == [1, 1, 1, 1]


def test_one_direction_is_spared_by_those_alone_who_use_it() -> None:
    up = LinkState.without(K4, frozenset(), frozenset({SlowLink(0, up=0.5)}))
    table = forwarding(K4, up, POLICIES["ofan"], seed=1)

    def slots(switch: int, edge: int) -> list[int]:
        group = table.first_group[switch] + table.edge_group[switch, edge]
        schedule = table.schedule(switch, int(table.group_schedule[group]))
        return [int((schedule == uplink).sum()) for uplink in range(2)]

    assert (slots(0, 1), slots(1, 0), slots(2, 0)) == ([1, 2], [1, 1], [1, 1])
    down = LinkState.without(K4, frozenset(), frozenset({SlowLink(0, down=0.5)}))
    table = forwarding(K4, down, POLICIES["ofan"], seed=1)
    assert (slots(0, 1), slots(1, 0), slots(2, 0), slots(2, 1)) == ([1, 1], [1, 2], [1, 2], [1, 1])


def test_host_dr_takes_a_slow_path_as_often_as_it_carries() -> None:
    slow = frozenset({SlowLink(CORE_LINK, 0.5, 0.5)})
    links = LinkState.without(K4, frozenset(), slow)
    ways = waypoints(K4, links, np.array([0, 0]), np.array([2, 1]))
    once = [[1, 0], [0, 1], [1, 1]]
    assert ways.sequence(0).tolist() == [[0, 0], *once, *once]
    assert ways.sequence(1).tolist() == [[0, 0], [1, 0]]
