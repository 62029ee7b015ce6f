"""Which links fail and when, drawn or named, and when the routes follow.

A seed fixes the failures for all load balancers alike (design, decision 10). A draw that cuts a
flow off from its destination for good is drawn again and counted; named failures that do so are an
error.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fattree.demand.flows import Flows
from fattree.draws import MASK, Stream, component, mix
from fattree.errors import FailureError
from fattree.experiment.model import Scenario
from fattree.routes.damping import Damping, damping
from fattree.routes.lags import Lags
from fattree.routes.places import places
from fattree.routes.probed import probed
from fattree.routes.slow_links import NOT_SLOW, RateChange, Slow, after, rate_changes
from fattree.routes.stranded import cut_off, no_path, refuse_lost_hosts, staying
from fattree.routes.wecmp import LinkState
from fattree.shape.topology import FatTree
from fattree.units import PS_PER_NS

Links = frozenset[int]
# At a rate at which a thousand draws cut a flow off, the draws that do not are no fair sample.
MOST_DRAWS = 1_000

# Of links in `failures.events`, each time that they fail: a line of a file may mean millions. Then
# links that are down or slow, counted anew at every change, as routes know them all each time.
MOST_OUTAGES = 500_000
MOST_KNOWN = 5_000_000

# As `hostagent.transports.state.NEVER`: later than any time, with room for a sum in int64.
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


class RouteChange(NamedTuple):
    """From `time_ps` on, switches route for links in `failed` being down and in `slow` slow.

    Each switch does so later by its lag (`fattree.routes.lags`).
    """

    time_ps: int
    failed: Links
    slow: Slow = NOT_SLOW


@dataclass(frozen=True, slots=True)
class Timeline:
    """All link events of a run, in order; the routes that hold at the start, and their changes.

    `redraws`: how often the draw was repeated. `hosts` are the outages of hosts' links, of which no
    route knows, by host. `rates` are links that become slower or faster, `first_slow` those that
    the first routes weigh. The last switches follow a route change `greatest_lag_ps` after it.
    """

    changes: tuple[LinkChange, ...]
    first_routes: Links
    routes: tuple[RouteChange, ...]
    redraws: int
    hosts: tuple[Outage, ...] = ()
    rates: tuple[RateChange, ...] = ()
    first_slow: Slow = NOT_SLOW
    greatest_lag_ps: int = 0

    @property
    def last_change_ps(self) -> int:
        """Return when links or routes change for the last time."""
        times = [change.time_ps for change in self.changes]
        times += [change.time_ps + self.greatest_lag_ps for change in self.routes]
        times += [change.time_ps for change in self.rates]
        times += [outage.up_ps for outage in self.hosts if outage.up_ps != FOREVER]
        return max(times, default=0)

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
    named, hosts = named_outages(scenario)
    rate = scenario.failures.rate
    changes = _changes(named)
    lost = {outage.link for outage in hosts if outage.up_ps == FOREVER}
    stays = staying(scenario, lost, flows)
    if len(stranded := _without_path(scenario.tree, changes, flows, stays)):
        raise no_path(scenario.tree, flows, stranded, since_ps=changes[-1].time_ps)

    refuse_lost_hosts(scenario, lost, flows)

    # Each attempt draws all links anew, from a stream of its own: failures stay independent, given
    # that they cut no host off.
    attempt = 0

    while rate > 0 and len(
        _without_path(
            scenario.tree, changes := _changes(named + draw(scenario, attempt)), flows, stays
        )
    ):
        attempt += 1
        if attempt == MOST_DRAWS:
            raise FailureError(
                f"failures.rate = {rate:g} cut a flow off in each of {MOST_DRAWS:,} draws: "
                "lower failures.rate"
            )

    rates = rate_changes(scenario)
    # Probes find dead links alone.
    is_probing = scenario.controller.detection == "probe"
    reported = _probed(scenario, changes) if is_probing else changes
    reported_rates = () if is_probing else rates
    first, routes = _routes(_damped(scenario, reported), reported_rates, scenario.convergence_ps)
    return Timeline(
        changes,
        first.failed,
        routes,
        redraws=attempt,
        hosts=tuple(_merged(hosts)),
        rates=rates,
        first_slow=first.slow,
        greatest_lag_ps=Lags.of(scenario).times_ps[-1],
    )


def draw(scenario: Scenario, attempt: int) -> list[Outage]:
    """Return the n-th draw's outages: each link fails at `failures.rate`, on its own, for good."""
    draws = mix(scenario.seed, component(Stream.FAILURE, attempt), np.arange(scenario.tree.links))
    time = round(scenario.failures.at_ns * PS_PER_NS)
    return [
        Outage(link, time, FOREVER)
        for link in np.flatnonzero(draws < scenario.failures.rate * (MASK + 1)).tolist()
    ]


def named_outages(scenario: Scenario) -> tuple[list[Outage], list[Outage]]:
    """Return the outages of `failures.events`: of links between switches, and of hosts' links.

    The latter's `link` is the host. Raises AddressError, FailureError.
    """
    links: list[Outage] = []
    hosts: list[Outage] = []
    count = 0
    for event in scenario.failures.events:
        down_ps = round(event.down_ns * PS_PER_NS)
        up_ps = FOREVER if event.up_ns is None else round(event.up_ns * PS_PER_NS)
        if up_ps <= down_ps:
            raise FailureError(
                f"{event.name} comes up at {event.up_ns:g} ns, "
                f"but it goes down at {event.down_ns:g} ns"
            )

        period_ps = round((event.every_ns or 0) * PS_PER_NS)
        of_links, of_hosts = places(scenario.tree, event)
        count += event.times * (len(of_links) + len(of_hosts))
        if count > MOST_OUTAGES:
            raise FailureError(
                f"failures.events: {event.name} makes {count:,} failures of links in all,"
                f" more than {MOST_OUTAGES:,}"
            )

        for shift in range(0, event.times * period_ps or 1, period_ps or 1):
            end_ps = FOREVER if up_ps == FOREVER else up_ps + shift
            links += [Outage(link, down_ps + shift, end_ps) for link in of_links]
            hosts += [Outage(host, down_ps + shift, end_ps) for host in of_hosts]

    return links, hosts


def moves_between_planes(scenario: Scenario) -> bool:
    """Return whether packets leave by other ports of their hosts while a port is down."""
    return scenario.fabric.is_drawn and bool(named_outages(scenario)[1])


def loss_thresholds(scenario: Scenario) -> tuple[dict[int, int], dict[int, int]]:
    """Return the loss thresholds of links between switches, and of hosts' links.

    The n-th packet on a directed link (as `sim.kernels.state` numbers them) is lost where the n-th
    number of `Stream.LOSS` for that link is below the threshold. Raises AddressError.
    """
    links: dict[int, int] = {}
    hosts: dict[int, int] = {}
    for loss in scenario.failures.losses:
        of_links, of_hosts = places(scenario.tree, loss)
        threshold = round(loss.share * (MASK + 1))
        links |= dict.fromkeys(of_links, threshold)
        hosts |= dict.fromkeys(of_hosts, threshold)

    return links, hosts


def outages(changes: Iterable[LinkChange]) -> dict[int, list[tuple[int, int]]]:
    """Return when each link that fails goes down and comes up."""
    down_since: dict[int, int] = {}
    of_links: dict[int, list[tuple[int, int]]] = {}
    for change in changes:
        down_since.update((link, change.time_ps) for link in change.down - down_since.keys())
        for link in change.up & down_since.keys():
            of_links.setdefault(link, []).append((down_since.pop(link), change.time_ps))

    for link, since_ps in down_since.items():
        of_links.setdefault(link, []).append((since_ps, FOREVER))

    return of_links


def _probed(scenario: Scenario, changes: tuple[LinkChange, ...]) -> tuple[LinkChange, ...]:
    """Return the changes that a controller's probes find."""
    times_ps = [change.time_ps for change in changes]
    return tuple(
        LinkChange(time_ps, dead, alive)
        for time_ps, dead, alive in probed(scenario, outages(changes), times_ps)
    )


def _changes(outages: list[Outage]) -> tuple[LinkChange, ...]:
    """Return the instants at which links change, in order.

    Outages of one link that overlap or touch are merged.
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
    # Sorted by link and then by time, an outage can only touch the last outage.
    merged: list[Outage] = []
    for outage in sorted(outages):
        last = merged[-1] if merged else None
        if last and last.link == outage.link and outage.down_ps <= last.up_ps:
            merged[-1] = last._replace(up_ps=max(last.up_ps, outage.up_ps))
        else:
            merged.append(outage)

    return merged


def _states(changes: tuple[LinkChange, ...]) -> Iterator[Links]:
    """Yield the links that are down after each change; raises FailureError for too many."""
    failed: Links = frozenset()
    count = 0
    for change in changes:
        # `-` binds tighter than `|`. No link is in both sets, as outages that touch are merged.
        failed = failed - change.up | change.down
        count += len(failed)
        _refuse_more(count)
        yield failed


def _damped(scenario: Scenario, changes: tuple[LinkChange, ...]) -> tuple[LinkChange, ...]:
    """Return the changes of the links that count as failed: those that flap do so for longer."""
    # A failure at time 0 is known before if G is 0, and costs nothing.
    is_known = scenario.convergence_ps == 0 and bool(changes) and changes[0].time_ps == 0
    flaps = damping(scenario.controller, changes[0].down if is_known else ())
    return changes if flaps is None else tuple(_counted(flaps, changes))


def _counted(flaps: Damping, changes: tuple[LinkChange, ...]) -> Iterator[LinkChange]:
    """Yield the changes of the links that a damping counts as failed, its releases among them."""
    failed: Links = frozenset()
    ahead = deque(changes)
    while ahead or flaps.next_release_ps is not None:
        release_ps = flaps.next_release_ps
        if release_ps is not None and (not ahead or release_ps < ahead[0].time_ps):
            time_ps, counted = release_ps, flaps.release(release_ps)
        else:
            change = ahead.popleft()
            time_ps = change.time_ps
            counted = flaps.on_change(time_ps, change.down, change.up)

        yield LinkChange(time_ps, counted - failed, failed - counted)
        failed = counted


def _routes(
    changes: tuple[LinkChange, ...], rates: tuple[RateChange, ...], convergence_ps: int | None
) -> tuple[RouteChange, tuple[RouteChange, ...]]:
    first = RouteChange(0, frozenset())
    if convergence_ps is None:
        return first, ()

    routes = [
        change._replace(time_ps=change.time_ps + convergence_ps)
        for change in _known(changes, rates)
    ]
    # With G = 0 changes at time 0 are planned for before the first packet.
    if routes and routes[0].time_ps == 0:
        return routes[0], tuple(routes[1:])

    return first, tuple(routes)


def _known(changes: tuple[LinkChange, ...], rates: tuple[RateChange, ...]) -> Iterator[RouteChange]:
    """Yield the links' state from each instant on at which it changes."""
    failed = dict(zip((change.time_ps for change in changes), _states(changes), strict=True))
    paced = {change.time_ps: change.links for change in rates}
    state = RouteChange(0, frozenset())
    count = 0
    for time_ps in sorted({*failed, *paced}):
        state = RouteChange(
            time_ps,
            failed.get(time_ps, state.failed),
            after(state.slow, paced.get(time_ps, NOT_SLOW)),
        )
        count += len(state.slow)
        _refuse_more(count)
        yield state


def _refuse_more(changes: int) -> None:
    if changes > MOST_KNOWN:
        raise FailureError(
            "failures: too many links are down or slow through too many changes: their sum is"
            f" above {MOST_KNOWN:,}"
        )


def _last_state(changes: tuple[LinkChange, ...]) -> Links:
    *_, last = (frozenset(), *_states(changes))
    return last


def _without_path(
    tree: FatTree, changes: tuple[LinkChange, ...], flows: Flows, stays: NDArray[np.bool_]
) -> NDArray[np.int64]:
    # Links that come back are waited for.
    lost = cut_off(tree, LinkState.without(tree, _last_state(changes)), flows)
    return lost[stays[lost]]
