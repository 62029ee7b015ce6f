"""Link events, drawn and named, and the routes that follow them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fattree.demand.traffic import flows
from fattree.errors import AddressError, FailureError
from fattree.experiment.model import Collective, Fabric, FailureEvent, Failures, Scenario
from fattree.routes.failures import LinkChange, Outage, RouteChange, Timeline, timeline
from fattree.routes.stranded import cut_off
from fattree.routes.wecmp import LinkState
from fattree.shape.addressing import link_named
from fattree.shape.topology import FatTree
from tests.fattree.brute_force import failing_trees, paths, seeds

K4 = FatTree(4)
CORE_LINK = "agg0_0-core0_1"
LINK = link_named(K4, CORE_LINK)
Failing = tuple[FatTree, frozenset[int]]


def scenario(
    *events: FailureEvent,
    k: int = 4,
    seed: int = 1,
    policy: str = "ofan",
    matrix: str = "permutation",
    **failures: float,
) -> Scenario:
    return Scenario(
        fabric=Fabric(k=k),
        collective=Collective.model_validate({"matrix": matrix}),
        failures=Failures.model_validate({"events": events, **failures}),
        seed=seed,
        policy=policy,
    )


def timeline_of(case: Scenario) -> Timeline:
    return timeline(case, flows(case))


def down(link: str = CORE_LINK, at_ns: float = 0, up_ns: float | None = None) -> FailureEvent:
    return FailureEvent(link=link, down_ns=at_ns, up_ns=up_ns)


def test_without_failures_nothing_happens() -> None:
    assert timeline_of(scenario()) == Timeline((), frozenset(), (), 0)


def test_routes_follow_after_g() -> None:
    case = scenario(down(at_ns=5_000, up_ns=20_000), convergence_rtt=2)
    delay = 2 * case.zero_load_rtt_ps
    line = timeline_of(case)
    here, nothing = frozenset({LINK}), frozenset[int]()
    assert line.changes == (
        LinkChange(5_000_000, here, nothing),
        LinkChange(20_000_000, nothing, here),
    )
    assert line.routes == (
        RouteChange(5_000_000 + delay, here),
        RouteChange(20_000_000 + delay, nothing),
    )
    assert line.first_routes == line.down_at_start == nothing


def test_failures_at_the_start_are_known_at_once_without_g() -> None:
    at_once, later, never = (
        timeline_of(scenario(down(), convergence_rtt=g)) for g in (0, 1, float("inf"))
    )
    assert at_once.down_at_start == later.down_at_start == never.down_at_start == {LINK}
    assert (at_once.first_routes, at_once.routes) == (frozenset({LINK}), ())
    assert later.first_routes == frozenset()
    assert [route.failed for route in later.routes] == [{LINK}]
    assert (never.first_routes, never.routes) == (frozenset(), ())


def test_changes_at_one_instant_are_one_event() -> None:
    line = timeline_of(scenario(down(at_ns=3), down("edge0_0-agg0_0", at_ns=1, up_ns=3)))
    assert [(change.time_ps, len(change.down), len(change.up)) for change in line.changes] == [
        (1_000, 1, 0),
        (3_000, 1, 1),
    ]


outages = st.tuples(st.integers(0, 20), st.integers(1, 10)).map(
    lambda pair: (pair[0], pair[0] + pair[1])
)


@given(st.lists(outages, max_size=5))
def test_a_link_is_down_exactly_while_some_outage_lasts(spans: list[tuple[int, int]]) -> None:
    line = timeline_of(scenario(*(down(at_ns=start, up_ns=end) for start, end in spans)))
    assert not any(change.down & change.up for change in line.changes)
    for time in range(32):
        changes = [change for change in line.changes if change.time_ps <= time * 1_000]
        state = sum(len(change.down) - len(change.up) for change in changes)
        assert state == any(start <= time < end for start, end in spans)


def test_a_link_cannot_come_up_before_it_goes_down() -> None:
    with pytest.raises(
        FailureError, match="agg0_0-core0_1 comes up at 5 ns, but it goes down at 5 ns"
    ):
        timeline_of(scenario(down(at_ns=5, up_ns=5)))


def test_unknown_links_are_named() -> None:
    with pytest.raises(AddressError, match="there is no switch core0_7 at k = 4"):
        timeline_of(scenario(down("agg0_0-core0_7")))


@pytest.mark.parametrize("g", [0, 2, float("inf")])
def test_flows_without_a_path_are_named(g: float) -> None:
    cut = [down(f"edge0_0-agg0_{agg}", at_ns=7) for agg in range(2)]
    with pytest.raises(
        FailureError, match=r"down from 7 ns on leave \d+ flow\(s\) without a path: h\d_\d_\d to h"
    ):
        timeline_of(scenario(*cut, convergence_rtt=g))


@settings(max_examples=30)
@given(failing_trees(st.sampled_from([2, 4]).map(FatTree)))
def test_cut_off_flows_have_no_path(case: Failing) -> None:
    tree, failed = case
    everyone = flows(scenario(k=tree.k, matrix="all_to_all"))
    lost = set(cut_off(tree, LinkState.without(tree, failed), everyone).tolist())
    for flow in range(0, len(everyone), 5):
        source, destination = (
            int(ends[flow]) // tree.hosts_per_edge
            for ends in (everyone.source, everyone.destination)
        )
        assert (flow in lost) == (
            source != destination and not paths(tree, failed, source, destination)
        )


@given(seeds, st.sampled_from(["flow", "subflow", "ofan"]))
def test_a_seed_fixes_the_drawn_links_for_all_load_balancers(seed: int, policy: str) -> None:
    of_ofan, of_policy = (
        timeline_of(scenario(k=8, seed=seed, policy=slug, rate=0.02)) for slug in ("ofan", policy)
    )
    assert of_ofan == of_policy


def test_links_fail_at_the_rate() -> None:
    """2 % of 256 links over 60 seeds: 307 expected, with a standard deviation of 17."""
    failed = [timeline_of(scenario(k=8, seed=seed, rate=0.02)).down_at_start for seed in range(60)]
    assert abs(sum(map(len, failed)) - 307) < 5 * 17
    assert len(set(failed)) > 50


@given(seeds)
def test_draws_that_cut_flows_off_are_drawn_again(seed: int) -> None:
    case = scenario(seed=seed, rate=0.3)
    line = timeline_of(case)
    assert not len(cut_off(K4, LinkState.without(K4, line.down_at_start), flows(case)))


def test_redraws_are_counted() -> None:
    assert max(timeline_of(scenario(seed=seed, rate=0.3)).redraws for seed in range(10)) > 0


def test_draws_are_repeated_for_what_named_failures_cut_off() -> None:
    """Half of edge0_0's uplinks are down by name; a draw must spare the other half."""
    for seed in range(20):
        line = timeline_of(scenario(down("edge0_0-agg0_0"), seed=seed, rate=0.2))
        assert link_named(K4, "edge0_0-agg0_1") not in line.down_at_start


def test_a_hopeless_rate_is_an_error() -> None:
    with pytest.raises(FailureError, match="lower failures"):
        timeline_of(scenario(rate=1))


def test_drawn_links_fail_at_their_time() -> None:
    line = timeline_of(scenario(k=8, rate=0.05, at_ns=4_000, convergence_rtt=1))
    assert [change.time_ps for change in line.changes] == [4_000_000]
    assert line.down_at_start == frozenset()
    assert line.routes[0].failed == line.changes[0].down
    assert np.max(list(line.changes[0].down)) < FatTree(8).links


def test_a_switch_takes_all_its_links_and_its_hosts_with_it() -> None:
    edge = timeline_of(scenario(FailureEvent(switch="edge1_0", down_ns=1, up_ns=3)))
    assert [sorted(change.down) for change in edge.changes] == [[4, 5], []]
    assert [outage.link for outage in edge.hosts] == [4, 5]

    core = timeline_of(scenario(FailureEvent(switch="core0_1", down_ns=1)))
    names = {f"agg{pod}_0-core0_1" for pod in range(4)}
    assert core.changes[0].down == {link_named(K4, name) for name in names}
    assert core.hosts == ()


def test_a_link_that_flaps_fails_so_often() -> None:
    event = FailureEvent(host="h0_0_1", down_ns=10, up_ns=12, times=3, every_ns=5)
    line = timeline_of(scenario(event))
    assert line.hosts == tuple(
        Outage(1, down_ns * 1000, down_ns * 1000 + 2000) for down_ns in (10, 15, 20)
    )
    assert line.last_change_ps == 22_000


def test_what_comes_back_may_cut_flows_off_and_what_stays_away_may_not() -> None:
    cut = [down(f"edge0_0-agg0_{agg}", at_ns=7, up_ns=9) for agg in range(2)]
    assert timeline_of(scenario(*cut)).changes[0].down == {0, 1}
    with pytest.raises(FailureError, match="the link of h0_0_0 never comes up again"):
        timeline_of(scenario(FailureEvent(host="h0_0_0", down_ns=1)))


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"down_ns": 1}, "name one of link, host, switch"),
        ({"link": CORE_LINK, "host": "h0_0_0", "down_ns": 1}, "name one of link, host, switch"),
        ({"link": CORE_LINK, "down_ns": 1, "times": 2}, "go together"),
        ({"link": CORE_LINK, "down_ns": 1, "times": 2, "every_ns": 9}, "the link must come up"),
        ({"link": CORE_LINK, "down_ns": 1, "up_ns": 9, "times": 2, "every_ns": 8}, "must come up"),
    ],
)
def test_events_that_say_nothing_clear_are_refused(event: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FailureEvent.model_validate(event)


@pytest.mark.parametrize(
    ("k", "failures", "said"),
    [
        (
            32,
            {
                "events": [
                    {
                        "switch": f"core{i}_{j}",
                        "down_ns": 5,
                        "up_ns": 6,
                        "times": 10_000,
                        "every_ns": 10,
                    }
                    for i in range(16)
                    for j in range(16)
                ]
            },
            "makes 640,000 failures of links in all, more than 500,000",
        ),
        (
            32,
            {
                "events": [
                    {
                        "link": f"agg{pod}_{agg}-core{agg}_{core}",
                        "down_ns": 256 * pod + 16 * agg + core,
                    }
                    for pod in range(16)
                    for agg in range(16)
                    for core in range(16)
                ]
            },
            "too many links are down or slow through too many changes",
        ),
        (
            4,
            {
                "degraded": [
                    {"link": "agg0_0-core0_0", "rate": 0.5, "at_ns": at_ns}
                    for at_ns in range(20_000)
                ]
            },
            "one link has 20,000 entries, more than 1,000",
        ),
    ],
)
def test_what_would_take_all_memory_is_refused_at_once(
    k: int, failures: dict[str, Any], said: str
) -> None:
    scenario = Scenario.model_validate({"fabric": {"k": k}, "failures": failures})
    with pytest.raises(FailureError, match=said):
        timeline(scenario, flows(scenario))
