"""Liveness of links, judged by probes that cross each link in both directions.

A link is dead when the probes of `misses` intervals have not arrived, so that after a failure
`misses` to `misses` + 1 intervals pass, and the latency of a link. It is alive again when probes of
`misses` later intervals have arrived. Where probes of most links stop at once, the fault is
probably the controller's, and it waits PATIENCE times as long.
"""

from collections.abc import Iterable, KeysView
from dataclasses import dataclass

from fattree.errors import ExperimentError
from fattree.experiment.model import Scenario
from fattree.shape.topology import FatTree, Level, LinkEnd
from fattree.units import PS_PER_US

Links = frozenset[int]
# The least Ethernet frame, without its FCS.
LEAST_FRAME = 60
DEFAULT_MISSES = 3
PATIENCE = 3


@dataclass(slots=True)
class Direction:
    """One direction of a link: the time since its last probe, and the probes that arrived since."""

    link: int
    waiting_since_ps: int | None = None
    is_heard: bool = False
    streak: int = 0


class LinkLiveness:
    """Follows all inter-switch links, which count as alive at first, unless they are in `down`.

    `judge` is due at `next_tick_ps`, when the next probes leave.
    """

    def __init__(
        self,
        tree: FatTree,
        interval_ps: int,
        misses: int,
        now_ps: int = 0,
        down: Iterable[int] = (),
    ) -> None:
        self.interval_ps = interval_ps
        self.misses = misses
        self.next_tick_ps = now_ps
        self.sent = self.heard = 0
        self._down = frozenset(down)
        self._tree = tree
        self._directions = {
            end: Direction(link) for link in range(tree.links) for end in tree.link_ends(link)
        }

    @property
    def ends(self) -> KeysView[LinkEnd]:
        """Return the switches and ports from which probes leave."""
        return self._directions.keys()

    def judge(self, now_ps: int) -> tuple[Links, Links]:
        """Return the links that have turned out to be dead, and alive; probes leave now.

        A late call judges no link: then the controller itself was stopped.
        """
        # The next tick counts from now then: those that were missed are not made up for.
        is_late = now_ps >= self.next_tick_ps + self.interval_ps
        self.next_tick_ps = (now_ps if is_late else self.next_tick_ps) + self.interval_ps
        nothing: Links = frozenset()
        change = (nothing, nothing) if is_late else self._judge(now_ps)

        # Silence begins with the first probe after the last probe that was heard.
        for direction in self._directions.values():
            if is_late or direction.waiting_since_ps is None:
                direction.waiting_since_ps = now_ps

        self.sent += len(self._directions)
        return change

    def hear(self, source: LinkEnd, end: LinkEnd) -> bool:
        """Take note of a probe that has arrived; return whether its link leads there."""
        # A probe at a port that its link does not lead to is no evidence about the link.
        direction = self._directions.get(source)
        if direction is None or self._tree.neighbour(*source) != end:
            return False

        direction.waiting_since_ps = None
        direction.is_heard = True
        self.heard += 1
        return True

    def skip(self, intervals: int) -> None:
        """Let intervals pass in which the same probes arrive as in the last interval."""
        skipped_ps = intervals * self.interval_ps
        self.next_tick_ps += skipped_ps
        for direction in self._directions.values():
            if direction.waiting_since_ps is not None:
                direction.waiting_since_ps += skipped_ps

    def _judge(self, now_ps: int) -> tuple[Links, Links]:
        # More than half of the living links at once is rather a controller that was cut off, or a
        # machine that stood still, than so many failures: then only a longer silence counts.
        silent = self._silent(now_ps, self.misses)
        alive = self._tree.links - len(self._down)
        dead = (
            silent
            if 2 * len(silent - self._down) <= alive
            else self._silent(now_ps, PATIENCE * self.misses)
        )

        # Back is a link of which both directions were heard in `misses` intervals since.
        unsure = set()
        for direction in self._directions.values():
            direction.streak = (
                0 if direction.link in silent else direction.streak + direction.is_heard
            )
            direction.is_heard = False
            if direction.streak < self.misses:
                unsure.add(direction.link)

        failed, back = dead - self._down, self._down - silent - unsure
        self._down = self._down - back | failed
        return failed, back

    def _silent(self, now_ps: int, intervals: int) -> Links:
        """Return the links on which a direction's probes have not arrived for so long."""
        since_ps = now_ps - intervals * self.interval_ps
        directions = self._directions.values()
        return frozenset(
            d.link
            for d in directions
            if d.waiting_since_ps is not None and d.waiting_since_ps <= since_ps
        )


def probe_times(scenario: Scenario) -> tuple[int, int]:
    """Return the interval of a scenario's probes, in ps, and how many may miss.

    By default the interval is the zero-load RTT. Raises ExperimentError where no link could ever
    pass.
    """
    settings = scenario.controller
    asked_us = settings.probe_interval_us
    interval_ps = scenario.zero_load_rtt_ps if asked_us is None else round(asked_us * PS_PER_US)
    misses = settings.probe_misses or DEFAULT_MISSES

    # A probe is heard a latency and its own length after it was sent, and must be before it counts.
    flight_ps = max(
        scenario.latencies_ps[level] + scenario.tx_ps(LEAST_FRAME, level) for level in Level
    )
    if misses * interval_ps <= flight_ps:
        raise ExperimentError(
            "controller.probe_interval_us x probe_misses = "
            f"{misses * interval_ps / PS_PER_US:g} µs: "
            f"a probe is on its way for {flight_ps / PS_PER_US:g} µs, so every link would seem dead"
        )

    return interval_ps, misses
