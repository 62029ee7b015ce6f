"""When links go down and come up, and when the routes follow."""

from dataclasses import dataclass

from fattree.experiment import Scenario
from tests.naive.draws import WORD, Purpose, number
from tests.naive.traffic import Message
from tests.naive.tree import Down, Links, Tree
from tests.naive.wire import NEVER, PS_PER_NS, Wire

MOST_DRAWS = 1_000


class Refused(Exception):
    """A scenario that no network runs: its failures leave a flow without a path."""


@dataclass(frozen=True)
class Change:
    """From a time on, these links are down."""

    time_ps: int
    down: Down


Outage = tuple[int, int, int]


def changes(scenario: Scenario, flows: list[Message]) -> list[Change]:
    """Return the link changes in order; raises Refused.

    Random failures that cut a flow off are drawn again, named ones are an error.
    """
    named = named_outages(scenario)
    if cuts_off(scenario, states(named), flows):
        raise Refused("named failures leave a flow without a path")

    for attempt in range(MOST_DRAWS):
        found = states(named + drawn_outages(scenario, attempt))
        if not cuts_off(scenario, found, flows):
            return found
    raise Refused("random failures leave a flow without a path every time")


def routes(scenario: Scenario, links: list[Change]) -> list[Change]:
    """Return what switches route for: each change, a convergence time later."""
    rtts = scenario.failures.convergence_rtt
    if rtts == float("inf"):
        return []
    delay_ps = round(rtts * Wire(scenario).zero_load_rtt_ps)
    return [Change(change.time_ps + delay_ps, change.down) for change in links]


def named_outages(scenario: Scenario) -> list[Outage]:
    """Return (link, from, until) of every named failure."""
    tree = Tree.of(scenario)
    return [
        (
            tree.link_named(event.link),
            round(event.down_ns * PS_PER_NS),
            NEVER if event.up_ns is None else round(event.up_ns * PS_PER_NS),
        )
        for event in scenario.failures.events
    ]


def drawn_outages(scenario: Scenario, attempt: int) -> list[Outage]:
    """Return a random failure of each link at the scenario's rate, for good."""
    time_ps = round(scenario.failures.at_ns * PS_PER_NS)
    return [
        (link, time_ps, NEVER)
        for link in range(Tree.of(scenario).links)
        if number(scenario.seed, Purpose.FAILURE, attempt, link) < scenario.failures.rate * WORD
    ]


def states(outages: list[Outage]) -> list[Change]:
    """Return which links are down from each instant on at which that changes.

    A link is down while any of its outages lasts, so that overlapping ones are as one.
    """
    times = sorted({time for _, *ends in outages for time in ends if time != NEVER})
    found = [
        Change(time, frozenset(link for link, since, until in outages if since <= time < until))
        for time in times
    ]
    before = [frozenset(), *(change.down for change in found)]
    return [change for change, old in zip(found, before, strict=False) if change.down != old]


def cuts_off(scenario: Scenario, links: list[Change], flows: list[Message]) -> bool:
    tree = Tree.of(scenario)
    ends = {(tree.edge_of(flow.source), tree.edge_of(flow.destination)) for flow in flows}
    return any(
        not Links(tree, change.down).paths(*pair)
        for change in links
        for pair in ends
        if pair[0] != pair[1]
    )
