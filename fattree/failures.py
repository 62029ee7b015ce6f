"""Which links fail and when, drawn or named, and when the routes follow.

A seed fixes the failures for all load balancers alike (design, decision 10). A draw that cuts a
flow off from its destination is drawn again and counted; named failures that do so are an error.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fattree.addressing import host_name, link_named
from fattree.draws import MASK, Stream, component, mix
from fattree.errors import FailureError
from fattree.experiment import Scenario
from fattree.flows import Flows
from fattree.topology import FatTree
from fattree.units import PS_PER_NS
from fattree.wecmp import LinkState, agg_weights

Links = frozenset[int]
# At a rate at which a thousand draws cut a flow off, the draws that do not are no fair sample.
MOST_DRAWS = 1_000

# As `hostagent.state.NEVER`: later than any time, with room for a sum in int64.
FOREVER = 2**62


class Outage(NamedTuple):
    """A link is down from `down_ps` until `up_ps`."""

    link: int
    down_ps: int
    up_ps: int


@dataclass(frozen=True, slots=True)
class LinkChange:
    """Links that go down or come up at one instant.

    On a controller's side, after this the set `failed` is down.
    """

    time_ps: int
    down: Links
    up: Links


@dataclass(frozen=True, slots=True)
class RouteChange:
    """From `time_ps` on, every switch routes for the links in `failed` being down."""

    time_ps: int
    failed: Links


@dataclass(frozen=True, slots=True)
class Timeline:
    """All link events of a run, in order; the routes that hold at the start, and their changes.

    `redraws`: how often the draw was repeated.
    """

    changes: tuple[LinkChange, ...]
    first_routes: Links
    routes: tuple[RouteChange, ...]
    redraws: int

    @property
    def down_at_start(self) -> Links:
        """Return the links that are down from time 0."""
        return (
            self.changes[0].down if self.changes and self.changes[0].time_ps == 0 else frozenset()
        )


def timeline(scenario: Scenario, flows: Flows) -> Timeline:
    """Return the scenario's link events and the route changes that follow each after G.

    Raises FailureError, AddressError.

    An event at time 0 with G = 0 is in the first routes; with G infinite routes never change.
    """
    named = named_outages(scenario)
    rate = scenario.failures.rate
    changes = _changes(named)
    _refuse_cut_off(scenario.tree, changes, flows)

    # Each attempt draws all links anew, from a stream of its own: failures stay independent, given
    # that they cut nobody off.
    attempt = 0

    while rate > 0 and _cuts_off(
        scenario.tree, changes := _changes(named + draw(scenario, attempt)), flows
    ):
        attempt += 1
        if attempt == MOST_DRAWS:
            raise FailureError(
                f"a failure rate of {rate:g} cut a flow off in each of {MOST_DRAWS:,} draws: "
                "lower failures.rate"
            )

    first, routes = _routes(changes, scenario.convergence_ps)
    return Timeline(changes, first, routes, attempt)


def draw(scenario: Scenario, attempt: int) -> list[Outage]:
    """Return the n-th draw's outages: each link fails at `failures.rate`, on its own, for good."""
    draws = mix(scenario.seed, component(Stream.FAILURE, attempt), np.arange(scenario.tree.links))
    time = round(scenario.failures.at_ns * PS_PER_NS)
    return [
        Outage(link, time, FOREVER)
        for link in np.flatnonzero(draws < scenario.failures.rate * (MASK + 1)).tolist()
    ]


def named_outages(scenario: Scenario) -> list[Outage]:
    """Return the outages of `failures.events`; raises AddressError, FailureError."""
    outages = []
    for event in scenario.failures.events:
        down_ps = round(event.down_ns * PS_PER_NS)
        up_ps = FOREVER if event.up_ns is None else round(event.up_ns * PS_PER_NS)
        if up_ps <= down_ps:
            raise FailureError(
                f"{event.link} comes up at {event.up_ns:g} ns, "
                f"but it goes down at {event.down_ns:g} ns"
            )

        outages.append(Outage(link_named(scenario.tree, event.link), down_ps, up_ps))

    return outages


def _changes(outages: list[Outage]) -> tuple[LinkChange, ...]:
    """Return the instants at which links change, in order.

    Outages of one link that overlap or touch are one.
    """
    events: dict[int, tuple[set[int], set[int]]] = {}
    for outage in _merged(outages):
        events.setdefault(outage.down_ps, (set(), set()))[0].add(outage.link)
        if outage.up_ps != FOREVER:
            events.setdefault(outage.up_ps, (set(), set()))[1].add(outage.link)

    return tuple(
        LinkChange(time, frozenset(down), frozenset(up))
        for time, (down, up) in sorted(events.items())
    )


def _merged(outages: list[Outage]) -> list[Outage]:
    # Sorted by link and then by time, an outage can only touch the last one.
    merged: list[Outage] = []
    for outage in sorted(outages):
        last = merged[-1] if merged else None
        if last and last.link == outage.link and outage.down_ps <= last.up_ps:
            merged[-1] = last._replace(up_ps=max(last.up_ps, outage.up_ps))
        else:
            merged.append(outage)

    return merged


def _states(changes: tuple[LinkChange, ...]) -> Iterator[Links]:
    """Yield the links that are down after each change."""
    failed: Links = frozenset()
    for change in changes:
        # `-` binds tighter than `|`. No link is in both sets, as outages that touch are one.
        failed = failed - change.up | change.down
        yield failed


def _routes(
    changes: tuple[LinkChange, ...], convergence_ps: int | None
) -> tuple[Links, tuple[RouteChange, ...]]:
    if convergence_ps is None:
        return frozenset(), ()

    times = (change.time_ps + convergence_ps for change in changes)
    routes = [
        RouteChange(time, failed) for time, failed in zip(times, _states(changes), strict=True)
    ]
    # With G = 0 a failure at time 0 is routed around before the first packet.
    if routes and routes[0].time_ps == 0:
        return routes[0].failed, tuple(routes[1:])

    return frozenset(), tuple(routes)


def cut_off(tree: FatTree, links: LinkState, flows: Flows) -> NDArray[np.int64]:
    """Return the flows that have no surviving path."""
    source = flows.source // tree.hosts_per_edge
    destination = flows.destination // tree.hosts_per_edge
    joined: NDArray[np.bool_] = agg_weights(tree, links).sum(axis=3) > 0

    # Inside a pod no core is needed: the agg itself joins the two edges.
    joined[np.arange(tree.pods), :, np.arange(tree.pods)] = True
    paths = (
        links.edge_agg[source]
        & links.edge_agg[destination]
        & joined[source // tree.edges_per_pod, :, destination // tree.edges_per_pod]
    )

    return np.flatnonzero((source != destination) & ~paths.any(axis=1))


def _cuts_off(tree: FatTree, changes: tuple[LinkChange, ...], flows: Flows) -> bool:
    return any(
        len(cut_off(tree, LinkState.without(tree, failed), flows)) for failed in _states(changes)
    )


def _refuse_cut_off(tree: FatTree, changes: tuple[LinkChange, ...], flows: Flows) -> None:
    for change, failed in zip(changes, _states(changes), strict=True):
        lost = cut_off(tree, LinkState.without(tree, failed), flows)
        if len(lost):
            named = [
                f"{host_name(tree, source)} to {host_name(tree, destination)}"
                for source, destination in zip(
                    flows.source[lost[:3]].tolist(),
                    flows.destination[lost[:3]].tolist(),
                    strict=True,
                )
            ]

            more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
            down = f"the links that are down from {change.time_ps / PS_PER_NS:g} ns on"
            raise FailureError(
                f"{down} leave {len(lost)} flow(s) without a path: {', '.join(named)}{more}"
            )
