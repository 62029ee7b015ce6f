"""One priority of a PFC port: its output queue and its ingress buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ofan_p4.softswitch.ports.pausable import NEVER, Buffer, PausableQueue


class Thresholds(NamedTuple):
    """Buffer thresholds in bytes: capacity, XOFF, XON."""

    most: int
    pause_above: int
    resume_at: int


class Watchdog(NamedTuple):
    """A guard against storms: a longer pause is a storm, and its port then drops or sends."""

    patience_ps: int = NEVER
    drops: bool = True


NO_WATCHDOG = Watchdog()


@dataclass(slots=True, eq=False)
class Gate:
    """The traffic of one priority at a port, out and in.

    `queue` leaves by the port, unless the far end has paused it, `until_ps` at most. `buffer` has
    the bytes that came in by the port; `told_ps` is when its link was paused. `is_storm` while the
    watchdog takes the pause for a storm.
    """

    rate_bps: int
    queue: PausableQueue
    buffer: Buffer
    watchdog: Watchdog = NO_WATCHDOG
    is_storm: bool = False
    until_ps: int = 0
    told_ps: int = 0
    _since_ps: int = 0
    _paused_ps: int = 0

    def pause(self, now_ps: int, until_ps: int) -> None:
        """Let no packet begin before `until_ps`, whatever earlier pauses hold."""
        self.until_ps = until_ps
        if not self.is_told:
            self._since_ps = now_ps
            self.queue.pause(now_ps)

    @property
    def is_told(self) -> bool:
        """Whether the far end has paused the port, also if the watchdog ignores the pause."""
        return self.queue.is_paused or self.is_storm

    @property
    def due_ps(self) -> int:
        """Return when a pause ends, or is taken for a storm."""
        if self.is_storm:
            return self.until_ps

        return min(self.until_ps, self._since_ps + self.watchdog.patience_ps)

    @property
    def is_dropping(self) -> bool:
        """Whether packets for the port are dropped."""
        return self.is_storm and self.watchdog.drops

    def take_for_storm(self, now_ps: int) -> int:
        """Give a pause up; return how many packets, the last ones, the queue drops for it."""
        dropped = len(self.queue.clear(now_ps)) if self.watchdog.drops else 0
        self._paused_ps = self.paused_ps(now_ps)
        self._since_ps = now_ps
        self.is_storm = True
        self.queue.resume(now_ps)
        return dropped

    def go_on(self, now_ps: int) -> None:
        """End a pause."""
        if self.is_told:
            self._paused_ps = self.paused_ps(now_ps)
            self.is_storm = False
            self.queue.resume(now_ps)

    def paused_ps(self, now_ps: int) -> int:
        """Return how long the queue has been paused until now."""
        return self._paused_ps + (now_ps - self._since_ps if self.is_told else 0)
