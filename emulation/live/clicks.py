"""Links that people break, mend, slow down or speed up while a run is shown.

A click is an event of the experiment at the virtual time of the click. The run is made once more
with it and goes on from there: until then it is the same run, event by event.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fattree.demand import traffic
from fattree.experiment.base import LATEST_NS
from fattree.experiment.model import Degraded, FailureEvent, Failures, Scenario
from fattree.routes.failures import FOREVER, Timeline, timeline
from fattree.routes.slow_links import FULL, SlowLink, host_shares
from fattree.shape.addressing import host_name, link_name
from fattree.units import PS_PER_NS


class Click(NamedTuple):
    """A link that goes down or comes up (`is_up`), or changes its rate (`slow`)."""

    time_ps: int
    link: int
    is_up: bool | None = None
    slow: SlowLink | None = None


def with_clicks(scenario: Scenario, clicks: Sequence[Click]) -> Scenario:
    """Return a scenario with clicks among its events; a link is as its last change leaves it.

    Raises the errors of `fattree.routes.failures.timeline`.
    """
    if not clicks:
        return scenario

    line = timeline(scenario, traffic.flows(scenario))
    events = (*_outages(scenario, line, clicks), *_host_outages(scenario, line))
    degraded = (*_degraded(scenario, line, clicks), *_slow_hosts(scenario))
    # Failures that were drawn are among the events.
    kept = {"losses", "storms", "convergence_rtt", "local_repair"}
    return scenario.model_copy(
        update={
            "failures": Failures(
                events=events, degraded=degraded, **scenario.failures.model_dump(include=kept)
            )
        }
    )


def _outages(scenario: Scenario, line: Timeline, clicks: Iterable[Click]) -> Iterable[FailureEvent]:
    changes = [
        (change.time_ps, link, is_up)
        for change in line.changes
        for links, is_up in ((change.down, False), (change.up, True))
        for link in links
    ]
    changes += [
        (click.time_ps, click.link, click.is_up) for click in clicks if click.is_up is not None
    ]
    down_since: dict[int, int] = {}
    # Sorted by time alone: at equal times, a click comes after the events of the file.
    for time_ps, link, is_up in sorted(changes, key=lambda change: change[0]):
        if not is_up:
            down_since.setdefault(link, time_ps)
        elif link in down_since:
            since_ps = down_since.pop(link)
            if since_ps < time_ps:
                yield FailureEvent(
                    link=link_name(scenario.tree, link),
                    down_ns=since_ps / PS_PER_NS,
                    up_ns=time_ps / PS_PER_NS,
                )

    for link, since_ps in down_since.items():
        # Not for good: who breaks a link by hand may mend it, so that no flow is cut off.
        yield FailureEvent(
            link=link_name(scenario.tree, link), down_ns=since_ps / PS_PER_NS, up_ns=LATEST_NS
        )


def _host_outages(scenario: Scenario, line: Timeline) -> Iterable[FailureEvent]:
    for host, down_ps, up_ps in line.hosts:
        yield FailureEvent(
            host=host_name(scenario.tree, host),
            down_ns=down_ps / PS_PER_NS,
            up_ns=None if up_ps == FOREVER else up_ps / PS_PER_NS,
        )


def _degraded(scenario: Scenario, line: Timeline, clicks: Iterable[Click]) -> Iterable[Degraded]:
    changes = [(change.time_ps, slow) for change in line.rates for slow in change.links]
    changes += [(click.time_ps, click.slow) for click in clicks if click.slow is not None]
    for link in {slow.link for _, slow in changes}:
        steps = sorted(
            ((time_ps, slow) for time_ps, slow in changes if slow.link == link),
            key=lambda step: step[0],
        )
        ends = [time_ps / PS_PER_NS for time_ps, _ in steps[1:]]
        for (time_ps, slow), until_ns in zip(steps, [*ends, None], strict=True):
            at_ns = time_ps / PS_PER_NS
            name = link_name(scenario.tree, link)
            if until_ns == at_ns:
                continue

            if slow.up < FULL:
                yield Degraded(
                    link=name, rate=slow.up, direction="up", at_ns=at_ns, until_ns=until_ns
                )
            if slow.down < FULL:
                yield Degraded(
                    link=name, rate=slow.down, direction="down", at_ns=at_ns, until_ns=until_ns
                )


def _slow_hosts(scenario: Scenario) -> Iterable[Degraded]:
    for host, share in host_shares(scenario, is_up=True).items():
        yield Degraded(host=host_name(scenario.tree, host), rate=share, direction="up")
    for host, share in host_shares(scenario, is_up=False).items():
        yield Degraded(host=host_name(scenario.tree, host), rate=share, direction="down")
