"""When links go down and come up, and when the routes follow."""

from dataclasses import dataclass
from math import ceil, log2

from fattree.experiment.model import FailureEvent, Place, Scenario
from tests.naive.draws import WORD, Purpose, number, scaled
from tests.naive.traffic import Message
from tests.naive.tree import Down, Links, Tree
from tests.naive.wire import NEVER, PS_PER_NS, Wire

MOST_DRAWS = 1_000


class Refused(Exception):
    """A scenario that no network runs: its failures leave a flow without a path."""


@dataclass(frozen=True)
class Change:
    """From a time on, these links are down, and `slow` directions carry a share of their rate."""

    time_ps: int
    down: Down
    slow: frozenset[tuple[tuple[int, bool], float]] = frozenset()


Outage = tuple[int, int, int]


def changes(scenario: Scenario, flows: list[Message]) -> list[Change]:
    """Return the link changes in order; raises Refused.

    Random failures that cut a flow off for good are drawn again, named ones are an error.
    """
    named = named_outages(scenario)
    if cuts_off(scenario, states(named), flows) or strands(scenario, flows):
        raise Refused("named failures leave a flow without a path")

    for attempt in range(MOST_DRAWS):
        link_changes = states(named + drawn_outages(scenario, attempt))
        if not cuts_off(scenario, link_changes, flows):
            return link_changes
    raise Refused("random failures leave a flow without a path every time")


def routes(scenario: Scenario, links: list[Change]) -> list[Change]:
    """Return the changes as routes follow them: each a convergence time later."""
    rtts = scenario.failures.convergence_rtt
    if rtts == float("inf"):
        return []
    delay_ps = round(rtts * Wire(scenario).zero_load_rtt_ps)
    links = counted(scenario, links, is_known_at_start=delay_ps == 0)
    shares, _ = slow(scenario)
    times = {change.time_ps for change in links} | {
        time for steps in shares.values() for time, _ in steps
    }
    return [
        Change(
            time + delay_ps,
            [frozenset[int](), *(change.down for change in links if change.time_ps <= time)][-1],
            frozenset(
                (direction, [1.0, *(share for since, share in steps if since <= time)][-1])
                for direction, steps in shares.items()
            ),
        )
        for time in sorted(times)
    ]


def lags(scenario: Scenario) -> list[int]:
    """Return how much later than the first each switch changes its routes."""
    choices = scenario.controller.spread_rtt or (0,)
    seed, rtt_ps = scenario.seed, Wire(scenario).zero_load_rtt_ps
    return [
        round(choices[scaled(number(seed, Purpose.LAG, 0, switch), len(choices))] * rtt_ps)
        for switch in range(Tree.of(scenario).switches)
    ]


def counted(scenario: Scenario, links: list[Change], is_known_at_start: bool) -> list[Change]:
    """Return the links that count as failed: those down, and those that flap or just flapped."""
    half_life_us = scenario.controller.damping_half_life_us
    if half_life_us is None:
        return links
    half_life_ps = max(1, round(half_life_us * 1_000_000))
    suppress = scenario.controller.damping_suppress or 3
    reuse = scenario.controller.damping_reuse or 1

    # Of each link the times between which it is left out, from the failure that was too many on.
    left_out: list[tuple[int, int, int]] = []
    for link in {link for change in links for link in change.down}:
        penalty, before_ps, until_ps = 0.0, 0, -1
        was_down = False
        for change in links:
            is_down = link in change.down
            if is_down and not was_down and not (is_known_at_start and change.time_ps == 0):
                halvings = (change.time_ps - before_ps) / half_life_ps
                penalty = min(1 + penalty * 0.5**halvings, 4 * suppress)
                before_ps = change.time_ps
                if penalty > suppress or before_ps <= until_ps:
                    wait_ps = max(0, ceil(half_life_ps * log2(penalty / reuse)))
                    until_ps = before_ps + wait_ps
                    left_out.append((link, before_ps, until_ps))
            was_down = is_down

    times = {change.time_ps for change in links} | {until_ps for *_, until_ps in left_out}
    return [
        Change(
            time,
            [frozenset[int](), *(change.down for change in links if change.time_ps <= time)][-1]
            | {link for link, since, until in left_out if since <= time < until},
        )
        for time in sorted(times)
    ]


def named_outages(scenario: Scenario) -> list[Outage]:
    """Return (link, from, until) of every named failure of links between switches."""
    tree = Tree.of(scenario)
    return [
        (link, since, until)
        for event in scenario.failures.events
        for link in links_of(tree, event)
        for since, until in spans(event)
    ]


def host_outages(scenario: Scenario) -> list[Outage]:
    """Return (host, from, until) of every named failure of hosts' links."""
    tree = Tree.of(scenario)
    return [
        (host, since, until)
        for event in scenario.failures.events
        for host in hosts_of(tree, event)
        for since, until in spans(event)
    ]


def spans(event: FailureEvent) -> list[tuple[int, int]]:
    """Return the (from, until) times at which an event's links are down."""
    intervals = []
    for time in range(event.times):
        later_ps = time * round((event.every_ns or 0) * PS_PER_NS)
        since = round(event.down_ns * PS_PER_NS) + later_ps
        until = NEVER if event.up_ns is None else round(event.up_ns * PS_PER_NS) + later_ps
        intervals.append((since, until))
    return intervals


def links_of(tree: Tree, place: Place) -> list[int]:
    """Return the links between switches of a place: for a switch, all up and down."""
    if place.link:
        return [tree.link_named(place.link)]
    if not place.switch:
        return []
    switch = tree.switch_named(place.switch)
    return sorted(
        {tree.link(near, far) for near, far in tree.cables().items() if near[0] == switch}
    )


def hosts_of(tree: Tree, place: Place) -> list[int]:
    """Return the hosts of a place's host links: for an edge, all hosts below it."""
    if place.host:
        return [tree.host_named(place.host)]
    if not place.switch:
        return []
    switch = tree.switch_named(place.switch)
    return [host for host in range(tree.hosts) if tree.edge_of(host) == switch]


def losses(scenario: Scenario) -> tuple[dict[int, int], dict[int, int]]:
    """Return the draw below which a packet is lost, by link between switches and by host."""
    tree = Tree.of(scenario)
    of_links: dict[int, int] = {}
    of_hosts: dict[int, int] = {}
    for loss in scenario.failures.losses:
        for link in links_of(tree, loss):
            of_links[link] = round(loss.share * WORD)
        for host in hosts_of(tree, loss):
            of_hosts[host] = round(loss.share * WORD)
    return of_links, of_hosts


# From when on (link or host, is it the direction up) has this share of its rate.
Shares = dict[tuple[int, bool], list[tuple[int, float]]]


def slow(scenario: Scenario) -> tuple[Shares, Shares]:
    """Return how the rates of links between switches, and of hosts', change; raises Refused."""
    tree = Tree.of(scenario)
    spans: list[tuple[tuple[bool, int, bool], int, int, float]] = []
    for entry in scenario.failures.degraded:
        since = round(entry.at_ns * PS_PER_NS)
        until = NEVER if entry.until_ns is None else round(entry.until_ns * PS_PER_NS)
        hosts = hosts_of(tree, entry)
        if until <= since or (hosts and (since, until) != (0, NEVER)):
            raise Refused("a link is slow for no time, or a host's for a while")
        ends = [(False, link) for link in links_of(tree, entry)] + [(True, host) for host in hosts]
        ways = [
            way for way in (True, False) if entry.direction in ("both", "up" if way else "down")
        ]
        spans += [((*end, way), since, until, entry.rate) for end in ends for way in ways]

    shares: tuple[Shares, Shares] = {}, {}
    for direction in {direction for direction, *_ in spans}:
        periods = [
            (since, until, rate) for slowed, since, until, rate in spans if slowed == direction
        ]
        times = sorted({time for since, until, _ in periods for time in (since, until)} - {NEVER})
        shares[direction[0]][direction[1:]] = [
            (time, min([1.0, *(rate for since, until, rate in periods if since <= time < until)]))
            for time in times
        ]
    return shares


def drawn_outages(scenario: Scenario, attempt: int) -> list[Outage]:
    """Return a random failure of each link at the scenario's rate, for good."""
    time_ps = round(scenario.failures.at_ns * PS_PER_NS)
    return [
        (link, time_ps, NEVER)
        for link in range(Tree.of(scenario).links)
        if number(scenario.seed, Purpose.FAILURE, attempt, link) < scenario.failures.rate * WORD
    ]


def states(outages: list[Outage]) -> list[Change]:
    """Return the links that are down, from each instant of a change on.

    A link is down while any of its outages lasts, so overlapping outages are a single outage.
    """
    times = sorted({time for _, *ends in outages for time in ends if time != NEVER})
    link_states = [
        Change(time, frozenset(link for link, since, until in outages if since <= time < until))
        for time in times
    ]
    before = [frozenset(), *(change.down for change in link_states)]
    return [change for change, old in zip(link_states, before, strict=False) if change.down != old]


def cuts_off(scenario: Scenario, links: list[Change], flows: list[Message]) -> bool:
    """Return whether a flow has no path in the end, after all links that come back are back."""
    tree = Tree.of(scenario)
    ends = {(tree.edge_of(flow.source), tree.edge_of(flow.destination)) for flow in flows}
    last = links[-1].down if links else frozenset()
    return any(not Links(tree, last).paths(*pair) for pair in ends if pair[0] != pair[1])


def strands(scenario: Scenario, flows: list[Message]) -> bool:
    """Return whether a host with flows is cut off for good."""
    lost = {host for host, _, until in host_outages(scenario) if until == NEVER}
    if scenario.fabric.plane_use == "draw":
        tree = Tree.of(scenario)
        machines = tree.hosts // (scenario.fabric.planes or 1)
        pairs = {(flow.source % machines, flow.destination % machines) for flow in flows}
        firsts = range(0, tree.hosts, machines)
        return any(all(lost & {a + first, b + first} for first in firsts) for a, b in pairs)
    return bool(lost & {end for flow in flows for end in (flow.source, flow.destination)})
