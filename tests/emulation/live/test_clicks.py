"""Clicks are events of the experiment: the last change of a link counts, all else stays."""

from typing import Any

import pytest

from emulation.live.clicks import Click, with_clicks
from fattree.demand import traffic
from fattree.errors import FailureError
from fattree.experiment.model import Scenario
from fattree.routes.failures import Timeline, timeline
from fattree.routes.slow_links import SlowLink, host_shares
from fattree.shape.addressing import link_named

LINK = "agg0_0-core0_0"
NS = 1000


def scenario(**failures: Any) -> Scenario:
    return Scenario.model_validate({"fabric": {"k": 4}, "failures": failures})


def line_of(chosen: Scenario) -> Timeline:
    return timeline(chosen, traffic.flows(chosen))


def click(time_ns: int, is_up: bool, name: str = LINK) -> Click:
    return Click(time_ns * NS, link_named(scenario().tree, name), is_up=is_up)


def states(chosen: Scenario, name: str = LINK) -> list[tuple[int, bool]]:
    """Return when a link changes (ns), and whether it is up then, but for the end of all time."""
    link = link_named(chosen.tree, name)
    return [
        (change.time_ps // NS, link in change.up)
        for change in line_of(chosen).changes
        if link in change.up | change.down and change.time_ps < 10**12
    ]


FILE = {"link": LINK, "down_ns": 1000, "up_ns": 4000}


@pytest.mark.parametrize(
    ("events", "clicks", "expected"),
    [
        ([FILE], [], [(1000, False), (4000, True)]),
        ([], [click(1000, False)], [(1000, False)]),
        ([], [click(1000, False), click(1001, True)], [(1000, False), (1001, True)]),
        # Down and up at one instant is no outage.
        ([], [click(1000, False), click(1000, True)], []),
        ([FILE], [click(1000, True)], []),
        # The file's repair ends the outage of a click, and comes too late for a mended link.
        (
            [FILE],
            [click(2000, True), click(3000, False)],
            [(1000, False), (2000, True), (3000, False), (4000, True)],
        ),
        ([FILE], [click(2000, True)], [(1000, False), (2000, True)]),
        # Down already: the file's failure begins nothing.
        ([FILE], [click(500, False)], [(500, False), (4000, True)]),
        ([FILE], [click(4000, False)], [(1000, False)]),
        ([FILE], [click(5000, False)], [(1000, False), (4000, True), (5000, False)]),
    ],
)
def test_the_last_change_of_a_link_counts(
    events: list[dict[str, Any]], clicks: list[Click], expected: list[tuple[int, bool]]
) -> None:
    assert states(with_clicks(scenario(events=events), clicks)) == expected


def test_a_host_may_be_cut_off_by_hand_and_not_by_a_file() -> None:
    uplinks = ("edge0_0-agg0_0", "edge0_0-agg0_1")
    cut_off = with_clicks(scenario(), [click(1000, False, name) for name in uplinks])
    assert [states(cut_off, name) for name in uplinks] == [[(1000, False)]] * 2
    with pytest.raises(FailureError, match="without a path"):
        line_of(scenario(events=[{"link": name, "down_ns": 1000} for name in uplinks]))


def test_rates_by_hand_join_those_of_the_file_in_each_direction() -> None:
    link = link_named(scenario().tree, LINK)
    file = scenario(
        degraded=[
            {"link": LINK, "rate": 0.5, "direction": "up", "at_ns": 1000, "until_ns": 5000},
            {"link": LINK, "rate": 0.3, "direction": "down", "at_ns": 2000},
        ]
    )
    clicks = [
        Click(3000 * NS, link, slow=SlowLink(link, 0.2, 0.2)),
        # Two at one instant: the second one holds.
        Click(4000 * NS, link, slow=SlowLink(link, 0.1, 0.1)),
        Click(4000 * NS, link, slow=SlowLink(link)),
    ]
    rates = [
        (change.time_ps // NS, slow.up, slow.down)
        for change in line_of(with_clicks(file, clicks)).rates
        for slow in change.links
    ]
    assert rates == [
        (1000, 0.5, 1.0),
        (2000, 0.5, 0.3),
        (3000, 0.2, 0.2),
        (4000, 1.0, 1.0),
        (5000, 1.0, 0.3),
    ]


def test_all_else_of_the_failures_stays() -> None:
    file = scenario(
        rate=0.1,
        at_ns=700,
        events=[{"host": "h0_0_0", "down_ns": 1000, "up_ns": 3000}],
        degraded=[
            {"host": "h1_0_0", "rate": 0.5},
            {"host": "h1_0_1", "rate": 0.4, "direction": "down"},
        ],
        losses=[{"link": LINK, "share": 0.01}],
        convergence_rtt=2,
        local_repair=True,
    )
    before = line_of(file)
    clicked = with_clicks(file, [click(900, False, "edge0_0-agg0_1")])
    after = line_of(clicked)
    assert before.changes[0].down and after.changes[0] == before.changes[0]
    assert after.hosts == before.hosts
    for is_up in (True, False):
        assert host_shares(clicked, is_up) == host_shares(file, is_up) != {}

    kept = ("losses", "storms", "convergence_rtt", "local_repair")
    assert [getattr(clicked.failures, name) for name in kept] == [
        getattr(file.failures, name) for name in kept
    ]


def test_without_clicks_it_is_the_scenario_itself() -> None:
    file = scenario(events=[FILE])
    assert with_clicks(file, []) is file
