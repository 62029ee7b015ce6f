"""Which links fail and when, and when the routes follow: drawn at a rate, named in the experiment, or both.

A seed fixes the failures for all load balancers alike (design, decision 10). A draw that cuts a flow off from its
destination is drawn again and counted; named failures that do so are an error.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fabric.addressing import host_name, link_named
from fabric.draws import MASK, Stream, component, mix
from fabric.errors import FailureError
from fabric.experiment import PS_PER_NS, Scenario
from fabric.flows import Flows
from fabric.topology import FatTree
from fabric.wecmp import LinkState, agg_weights

Links = frozenset[int]
MOST_DRAWS = 1_000


@dataclass(frozen=True, slots=True)
class LinkChange:
    """Links that go down or come up at one instant; on a controller's side, after this the set `failed` is down."""

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
    """All link events of a run, in order; the routes that hold at the start, and their changes; how often a draw was repeated."""

    changes: tuple[LinkChange, ...]
    first_routes: Links
    routes: tuple[RouteChange, ...]
    redraws: int

    @property
    def down_at_start(self) -> Links:
        """Return the links that are down from time 0."""
        return self.changes[0].down if self.changes and self.changes[0].time_ps == 0 else frozenset()


def timeline(scenario: Scenario, flows: Flows) -> Timeline:
    """Return the scenario's link events and the route changes that follow each after G; raises FailureError, AddressError.

    An event at time 0 with G = 0 is in the first routes; with G infinite routes never change.
    """
    tree, failures = scenario.tree, scenario.failures
    events: dict[int, tuple[set[int], set[int]]] = {}

    def at(time_ns: float) -> tuple[set[int], set[int]]:
        return events.setdefault(round(time_ns * PS_PER_NS), (set(), set()))

    drawn, redraws = draw(scenario, flows)
    if drawn:
        at(failures.at_ns)[0].update(drawn)
    for event in failures.events:
        link = link_named(tree, event.link)
        at(event.down_ns)[0].add(link)
        if event.up_ns is not None:
            if event.up_ns <= event.down_ns:
                raise FailureError(f"{event.link} comes up at {event.up_ns:g} ns, but it goes down at {event.down_ns:g} ns")
            at(event.up_ns)[1].add(link)
    changes = tuple(LinkChange(time, frozenset(down - up), frozenset(up - down)) for time, (down, up) in sorted(events.items()))
    first, routes = _routes(changes, scenario.convergence_ps)
    for failed in (first, *(route.failed for route in routes)):
        _refuse_cut_off(tree, failed, flows)
    return Timeline(changes, first, routes, redraws)


def _routes(changes: tuple[LinkChange, ...], convergence_ps: int | None) -> tuple[Links, tuple[RouteChange, ...]]:
    first: Links = frozenset()
    failed: Links = frozenset()
    routes: list[RouteChange] = []
    for change in changes:
        failed = failed - change.up | change.down
        if convergence_ps is None:
            continue
        if change.time_ps + convergence_ps == 0:
            first = failed
        else:
            routes.append(RouteChange(change.time_ps + convergence_ps, failed))
    return first, tuple(routes)


def draw(scenario: Scenario, flows: Flows) -> tuple[Links, int]:
    """Return the links that fail at `failures.rate`, each on its own, and how many draws had cut a flow off before."""
    tree, rate = scenario.tree, scenario.failures.rate
    if rate == 0:
        return frozenset(), 0
    for attempt in range(MOST_DRAWS):
        draws = mix(scenario.seed, component(Stream.FAILURE, attempt), np.arange(tree.links))
        failed = frozenset(np.flatnonzero(draws < rate * (MASK + 1)).tolist())
        if not len(cut_off(tree, LinkState.without(tree, failed), flows)):
            return failed, attempt
    raise FailureError(f"a failure rate of {rate:g} cut a flow off in each of {MOST_DRAWS:,} draws: lower failures.rate")


def cut_off(tree: FatTree, links: LinkState, flows: Flows) -> NDArray[np.int64]:
    """Return the flows that have no surviving path."""
    h = tree.half
    source, destination = flows.source // h, flows.destination // h
    joined: NDArray[np.bool_] = agg_weights(tree, links).sum(axis=3) > 0
    joined[np.arange(tree.k), :, np.arange(tree.k)] = True
    paths = links.edge_agg[source] & links.edge_agg[destination] & joined[source // h, :, destination // h]
    return np.flatnonzero((source != destination) & ~paths.any(axis=1))


def _refuse_cut_off(tree: FatTree, failed: Links, flows: Flows) -> None:
    lost = cut_off(tree, LinkState.without(tree, failed), flows)
    if not len(lost):
        return
    names = [f"{host_name(tree, int(flows.source[f]))} to {host_name(tree, int(flows.destination[f]))}" for f in lost[:3]]
    more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
    raise FailureError(f"the failed links leave {len(lost)} flow(s) without a path: {', '.join(names)}{more}")
