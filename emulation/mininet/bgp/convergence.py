"""Failures of links on running routers: the times of all switches, and their weights after it."""

import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from statistics import median

import numpy as np

from controller.kernel_routes import KernelRoutes, RouteMonitor, Rows, route_news
from emulation.errors import StartError
from emulation.mininet.bgp.routers import START_SECONDS, Routers
from fattree.routes.bgp import uplink_ratios
from fattree.routes.iwrr import simplify
from fattree.shape.addressing import link_name, switch_name

# BGP is quiet when no kernel has changed a route for so long; it passes a route on after 50 ms.
QUIET_SECONDS = 0.5
# A change is given up when the routes are others than computed for so long.
MOST_SECONDS = 30.0
MS = 1_000.0


@dataclass(frozen=True, slots=True)
class Change:
    """A change of links together, and the routes in the switches' kernels after it.

    `took_ms` has a time for each switch with changed routes, up to its last route.
    `other_than_computed` and `other_than_exact` count the pairs (switch, destination edge) with
    other weights than `fattree.routes.bgp` computes, and than W-ECMP has.
    """

    links: tuple[str, ...]
    is_up: bool
    took_ms: tuple[float, ...]
    routes: int
    other_than_computed: int
    other_than_exact: int

    @property
    def first_ms(self) -> float:
        """Return the time of the first switch."""
        return min(self.took_ms, default=0.0)

    @property
    def median_ms(self) -> float:
        """Return the median over switches."""
        return median(self.took_ms) if self.took_ms else 0.0

    @property
    def last_ms(self) -> float:
        """Return the time of the last switch."""
        return max(self.took_ms, default=0.0)


def await_routes(routers: Routers, failed: frozenset[int] = frozenset()) -> float:
    """Wait until every kernel has the routes of a fabric without `failed`; return the seconds.

    Raises StartError, naming a switch that lacks some.
    """
    began = time.monotonic()
    routes = uplink_ratios(routers.tree, failed, "bgp")
    missing = set(range(routers.tree.first_core))
    while missing := {
        switch for switch in missing if not np.array_equal(_held(routers, switch), routes[switch])
    }:
        routers.processes.refuse_dead()
        if time.monotonic() - began > START_SECONDS:
            name = switch_name(routers.tree, min(missing))
            raise StartError(f"{name} lacks routes after {START_SECONDS:.0f} s")

        time.sleep(0.1)

    return time.monotonic() - began


def _held(routers: Routers, switch: int) -> Rows:
    with routers.inside(switch), closing(KernelRoutes(routers.tree, switch)) as routes:
        return simplify(routes.weights())


def fail_and_mend(routers: Routers, failures: Iterable[frozenset[int]]) -> Iterator[Change]:
    """Take sets of links down and up again, one set after the other; yield each change."""
    tree = routers.tree
    news = {}
    for switch in range(tree.switches):
        with routers.inside(switch):
            news[switch] = route_news()

    monitor = RouteMonitor(news)
    try:
        for failed in failures:
            for is_up in (False, True):
                state = frozenset[int]() if is_up else failed
                routes = uplink_ratios(tree, state, "bgp")
                # Routes that still change belong to no change of ours.
                monitor.until_quiet(QUIET_SECONDS)
                began = time.monotonic()
                for link in sorted(failed):
                    routers.set_link(link, is_up)

                changed, held = _settled(routers, monitor, routes, began)
                yield Change(
                    links=tuple(link_name(tree, link) for link in sorted(failed)),
                    is_up=is_up,
                    took_ms=tuple(sorted((end - began) * MS for end in changed.values())),
                    routes=sum(int(rows.any(axis=1).sum()) for rows in held),
                    other_than_computed=differing(held, routes),
                    other_than_exact=differing(held, uplink_ratios(tree, state, "exact")),
                )
    finally:
        monitor.close()


def _settled(
    routers: Routers, monitor: RouteMonitor, routes: list[Rows], began: float
) -> tuple[dict[int, float], list[Rows]]:
    """Return when each switch last changed a route, and the weights that all have in the end."""
    changed: dict[int, float] = {}
    while True:
        changed.update(monitor.until_quiet(QUIET_SECONDS))
        routers.processes.refuse_dead()
        held = [_held(routers, switch) for switch in range(routers.tree.first_core)]
        # Quiet alone is not the end: a session that comes up again may take seconds.
        if not differing(held, routes) or time.monotonic() - began > MOST_SECONDS:
            return changed, held


def differing(held: list[Rows], routes: list[Rows]) -> int:
    """Return how many pairs (switch, destination edge) have other ratios of weights."""
    pairs = zip(held, routes, strict=True)
    return sum(int((ours != theirs).any(axis=1).sum()) for ours, theirs in pairs)
