"""Changes of links as probes find them, worked out before a run.

Probes wait in no queue and disturb no data, so that links alone decide when each arrives.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from fattree.experiment.model import Scenario
from fattree.routes.link_liveness import (
    LEAST_FRAME,
    PATIENCE,
    LinkLiveness,
    Links,
    probe_times,
)
from fattree.routes.slow_links import FULL, paces
from fattree.shape.topology import LEVEL_OF, LinkEnd

# A link goes down at the first time, and comes up at the second.
Outages = Mapping[int, Sequence[tuple[int, int]]]


class Crossings:
    """The ways of frames over the links between switches, which wait in no queue."""

    def __init__(self, scenario: Scenario, outages: Outages) -> None:
        self._scenario = scenario
        self._outages = outages
        self._paces = paces(scenario).of_links

    @property
    def pace_times_ps(self) -> list[int]:
        """Return when links become slower or faster."""
        return [pace.time_ps for steps in self._paces.values() for pace in steps]

    def arrival(self, switch: int, port: int, now_ps: int, size: int) -> tuple[int, LinkEnd] | None:
        """Return when and where a frame arrives that starts now; None where the link is down."""
        tree = self._scenario.tree
        link, far = tree.link_at(switch, port), tree.neighbour(switch, port)
        assert link is not None and far is not None
        if any(down <= now_ps < up for down, up in self._outages.get(link, ())):
            return None

        steps = self._paces.get((link, port > tree.downlinks(switch)), ())
        past = bisect_right(steps, now_ps, key=attrgetter("time_ps"))
        level = LEVEL_OF[tree.layer_of(switch, port)]
        sending_ps = self._scenario.tx_ps(size, level, steps[past - 1].share if past else FULL)
        return now_ps + sending_ps + self._scenario.latencies_ps[level], far


def probed(
    scenario: Scenario, outages: Outages, times_ps: Sequence[int]
) -> Iterator[tuple[int, Links, Links]]:
    """Yield when a controller's probes find links to be dead, and to be alive again.

    `times_ps` are the times at which links go down or come up. Raises ExperimentError where no link
    could ever pass (`probe_times`).
    """
    flights = Flights(scenario, Crossings(scenario, outages), times_ps)
    while times_ps and not flights.is_over:
        now_ps = flights.liveness.next_tick_ps
        dead, alive = flights.tick(now_ps)
        if dead or alive:
            yield now_ps, dead, alive

        flights.skip(now_ps)


class Flights:
    """All probes under way, and the intervals between them.

    `is_over` where no probe will find anything new.
    """

    def __init__(self, scenario: Scenario, crossings: Crossings, times_ps: Sequence[int]) -> None:
        interval_ps, misses = probe_times(scenario)
        self.liveness = LinkLiveness(scenario.tree, interval_ps, misses)
        self.is_over = False
        self._crossings = crossings
        self._ahead_ps = sorted({*times_ps, *crossings.pace_times_ps}, reverse=True)
        # By the time of arrival.
        self._arriving: dict[int, list[tuple[LinkEnd, LinkEnd]]] = defaultdict(list)
        # The longest silence that counts, and every link's return.
        self._settling_ps = (PATIENCE * misses + misses + 2) * interval_ps
        self._settled_ps = self._settling_ps

    def tick(self, now_ps: int) -> tuple[Links, Links]:
        """Send the probes of an interval; return which links have turned out dead, and alive."""
        # A probe that arrives as others leave arrives first.
        for time_ps in [time_ps for time_ps in self._arriving if time_ps <= now_ps]:
            for source, end in self._arriving.pop(time_ps):
                self.liveness.hear(source, end)

        change = self.liveness.judge(now_ps)
        for source in self.liveness.ends:
            arrival = self._crossings.arrival(*source, now_ps, LEAST_FRAME)
            if arrival is not None:
                self._arriving[arrival[0]].append((source, arrival[1]))

        while self._ahead_ps and self._ahead_ps[-1] <= now_ps:
            self._ahead_ps.pop()
            self._settled_ps = max(now_ps, *self._arriving) + self._settling_ps

        return change

    def skip(self, now_ps: int) -> None:
        """Leave out intervals that repeat the last interval, until links change or for good."""
        if now_ps < self._settled_ps:
            return

        if not self._ahead_ps:
            self.is_over = True
            return

        interval_ps = self.liveness.interval_ps
        intervals = max(0, (self._ahead_ps[-1] - now_ps) // interval_ps - 1)
        self.liveness.skip(intervals)
        later = {
            time_ps + intervals * interval_ps: ends for time_ps, ends in self._arriving.items()
        }
        self._arriving = defaultdict(list, later)
