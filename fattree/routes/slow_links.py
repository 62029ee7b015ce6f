"""Links that are slow rather than dead: when, in which direction, at which share of their rate.

A packet that starts while a link is slow takes as long as at the lower rate, to its last bit. Where
several entries meet on a link, the slowest counts.
"""

from collections.abc import Iterable
from typing import NamedTuple

from fattree.errors import FailureError
from fattree.experiment.model import Degraded, Scenario
from fattree.routes.places import places
from fattree.units import PS_PER_NS

FULL = 1.0
# Of one link, each of which is compared with all others.
MOST_SPANS = 1_000


class SlowLink(NamedTuple):
    """The shares of a switch link's rate, towards cores (`up`) and from them."""

    link: int
    up: float = FULL
    down: float = FULL

    @property
    def share(self) -> float:
        """Return the share of its slower direction."""
        return min(self.up, self.down)

    @property
    def is_slow(self) -> bool:
        """Return whether it is."""
        return self.share < FULL


Slow = frozenset[SlowLink]
NOT_SLOW: Slow = frozenset()


class RateChange(NamedTuple):
    """From `time_ps` on, these links run at other rates than before, perhaps their own."""

    time_ps: int
    links: Slow


class Pace(NamedTuple):
    """From `time_ps` on, a directed link carries a share of its rate."""

    time_ps: int
    share: float


class Paces(NamedTuple):
    """The slow directions of links between switches, and of hosts': (link or host, is up)."""

    of_links: dict[tuple[int, bool], tuple[Pace, ...]]
    of_hosts: dict[tuple[int, bool], tuple[Pace, ...]]


class _Span(NamedTuple):
    from_ps: int
    until_ps: int | None
    share: float


def paces(scenario: Scenario) -> Paces:
    """Return how the rates of slow links change; raises AddressError, FailureError."""
    of_links: dict[tuple[int, bool], list[_Span]] = {}
    of_hosts: dict[tuple[int, bool], list[_Span]] = {}
    for slow in scenario.failures.degraded:
        span = _span(slow)
        links, hosts = places(scenario.tree, slow)
        if hosts and span[:2] != (0, None):
            raise FailureError(
                f"failures.degraded: {slow.name} means a host's link, which is slow all the time "
                "or never: leave out at_ns and until_ns"
            )

        for is_up in _directions(slow):
            for link in links:
                of_links.setdefault((link, is_up), []).append(span)
            for host in hosts:
                of_hosts.setdefault((host, is_up), []).append(span)

    return Paces(
        {way: _steps(spans) for way, spans in of_links.items()},
        {way: _steps(spans) for way, spans in of_hosts.items()},
    )


def _span(slow: Degraded) -> _Span:
    from_ps = round(slow.at_ns * PS_PER_NS)
    until_ps = None if slow.until_ns is None else round(slow.until_ns * PS_PER_NS)
    if until_ps is not None and until_ps <= from_ps:
        raise FailureError(
            f"{slow.name} is slow until {slow.until_ns:g} ns, but only from {slow.at_ns:g} ns on"
        )

    return _Span(from_ps, until_ps, slow.rate)


def _directions(slow: Degraded) -> tuple[bool, ...]:
    return {"both": (True, False), "up": (True,), "down": (False,)}[slow.direction]


def _steps(spans: list[_Span]) -> tuple[Pace, ...]:
    """Return the instants at which a direction's rate changes, in order; raises FailureError."""
    if len(spans) > MOST_SPANS:
        raise FailureError(
            f"failures.degraded: one link has {len(spans):,} entries, more than {MOST_SPANS:,}"
        )

    times = {span.from_ps for span in spans} | {
        span.until_ps for span in spans if span.until_ps is not None
    }
    steps: list[Pace] = []
    for time_ps in sorted(times):
        share = min(
            (
                span.share
                for span in spans
                if span.from_ps <= time_ps and (span.until_ps is None or time_ps < span.until_ps)
            ),
            default=FULL,
        )
        if not steps or steps[-1].share != share:
            steps.append(Pace(time_ps, share))

    return tuple(steps)


def host_shares(scenario: Scenario, is_up: bool) -> dict[int, float]:
    """Return the constant shares of hosts' slow links, from the hosts (`is_up`) or to them."""
    of_hosts = paces(scenario).of_hosts
    return {host: steps[0].share for (host, up), steps in of_hosts.items() if up == is_up}


def rate_changes(scenario: Scenario) -> tuple[RateChange, ...]:
    """Return when links between switches become slower or faster; raises as `paces` does."""
    of_links = paces(scenario).of_links
    changes: dict[int, set[int]] = {}
    for (link, _), steps in of_links.items():
        for step in steps:
            changes.setdefault(step.time_ps, set()).add(link)

    return tuple(
        RateChange(
            time_ps,
            frozenset(
                SlowLink(link, *(_share(of_links, link, up, time_ps) for up in (True, False)))
                for link in links
            ),
        )
        for time_ps, links in sorted(changes.items())
    )


def _share(
    of_links: dict[tuple[int, bool], tuple[Pace, ...]], link: int, is_up: bool, time_ps: int
) -> float:
    steps = of_links.get((link, is_up), ())
    return next((step.share for step in reversed(steps) if step.time_ps <= time_ps), FULL)


def after(slow: Slow, change: Iterable[SlowLink]) -> Slow:
    """Return which links are slow after a change."""
    links = {slow_link.link: slow_link for slow_link in slow} | {
        slow_link.link: slow_link for slow_link in change
    }
    return frozenset(slow_link for slow_link in links.values() if slow_link.is_slow)


def at_rate(share: float) -> str:
    """Return how fast a link is, in words."""
    return "at its full rate" if share == FULL else f"at {100 * share:g} % of its rate"


def slowest(scenario: Scenario) -> float:
    """Return the least share of its rate that any link ever carries."""
    return min((slow.rate for slow in scenario.failures.degraded), default=FULL)
