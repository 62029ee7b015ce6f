"""A priority of a port that pauses: what a pause holds there, and what comes in by it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from ofan_p4.softswitch.pausable import NEVER, Buffer, Held, PausableQueue
from ofan_p4.softswitch.switch import Pending


class Thresholds(NamedTuple):
    """Of a buffer, in bytes: what it holds, above what it pauses its link, when that goes on."""

    most: int
    pause_above: int
    resume_at: int


class Watchdog(NamedTuple):
    """A guard against storms: a longer pause is one, and its port then drops or sends."""

    patience_ps: int = NEVER
    drops: bool = True


NO_WATCHDOG = Watchdog()


class Waiting(NamedTuple):
    """A copy in a queue, its way through that, and the buffer in which its bytes are."""

    pending: Pending
    passage: Held
    buffer: Buffer


@dataclass(slots=True, eq=False)
class Gate:
    """The traffic of one priority at a port, out and in.

    `queue` leaves by the port, unless the far end has paused it, `until_ps` at most; then `held`
    are the copies that wait for no event, of all that are `waiting`. `buffer` has what has come in
    by the port; `told_ps` is when its link was paused. The watchdog has taken a pause for a storm
    that `is_storm`.
    """

    rate_bps: int
    queue: PausableQueue
    buffer: Buffer
    watchdog: Watchdog = NO_WATCHDOG
    waiting: deque[Waiting] = field(default_factory=deque)
    held: list[Waiting] = field(default_factory=list)
    is_storm: bool = False
    until_ps: int = 0
    told_ps: int = 0
    _since_ps: int = 0
    _paused_ps: int = 0

    def pause(self, now_ps: int, until_ps: int) -> None:
        """Let nothing begin before `until_ps`, whatever was said before."""
        self.until_ps = until_ps
        if not self.is_told:
            self._since_ps = now_ps
            self.queue.pause(now_ps)

    @property
    def is_told(self) -> bool:
        """Whether the far end has paused the port, heeded or not."""
        return self.queue.is_paused or self.is_storm

    @property
    def due_ps(self) -> int:
        """Return when a pause ends, or is taken for a storm."""
        if self.is_storm:
            return self.until_ps

        return min(self.until_ps, self._since_ps + self.watchdog.patience_ps)

    @property
    def is_dropping(self) -> bool:
        """Whether what is for the port is dropped."""
        return self.is_storm and self.watchdog.drops

    def take_for_storm(self, now_ps: int) -> list[Waiting]:
        """Give a pause up; return the copies that are dropped for it."""
        dropped: list[Waiting] = []
        if self.watchdog.drops:
            self.queue.clear(now_ps)
            dropped = [each for each in self.waiting if each.passage.is_dropped]
            self.waiting = deque(each for each in self.waiting if not each.passage.is_dropped)
            self.held = []

        self._paused_ps = self.paused_ps(now_ps)
        self._since_ps = now_ps
        self.is_storm = True
        return dropped

    def go_on(self, now_ps: int) -> list[Waiting]:
        """End a pause; return the copies that have a departure again."""
        if not self.is_told:
            return []

        self._paused_ps = self.paused_ps(now_ps)
        self.is_storm = False
        return self.release(now_ps)

    def release(self, now_ps: int) -> list[Waiting]:
        """Let copies begin again; return those that have a departure again."""
        self.queue.resume(now_ps)
        held, self.held = self.held, []
        return held

    def paused_ps(self, now_ps: int) -> int:
        """Return how long the queue has been paused until now."""
        return self._paused_ps + (now_ps - self._since_ps if self.is_told else 0)
