"""A priority of a port that pauses: what a pause holds there, and what comes in by it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ofan_p4.softswitch.pausable import Buffer, Held, PausableQueue
from ofan_p4.softswitch.switch import Pending


class Thresholds(NamedTuple):
    """Of a buffer, in bytes: what it holds, above what it pauses its link, when that goes on."""

    most: int
    pause_above: int
    resume_at: int


class Waiting(NamedTuple):
    """A copy in a queue, its way through that, and the buffer in which its bytes are."""

    pending: Pending
    passage: Held
    buffer: Buffer


@dataclass(slots=True, eq=False)
class Gate:
    """The traffic of one priority at a port, out and in.

    `queue` leaves by the port, unless the far end has paused it, `until_ps` at most; then `held`
    are the copies that wait for no event. `buffer` has what has come in by the port; `told_ps` is
    when its link was paused.
    """

    rate_bps: int
    queue: PausableQueue
    buffer: Buffer
    held: list[Waiting] = field(default_factory=list)
    until_ps: int = 0
    told_ps: int = 0
    _since_ps: int = 0
    _paused_ps: int = 0

    def pause(self, now_ps: int, until_ps: int) -> None:
        """Let nothing begin before `until_ps`, whatever was said before."""
        self.until_ps = until_ps
        if not self.queue.is_paused:
            self._since_ps = now_ps
            self.queue.pause(now_ps)

    def go_on(self, now_ps: int) -> list[Waiting]:
        """End a pause; return the copies that have a departure again."""
        if not self.queue.is_paused:
            return []

        self._paused_ps = self.paused_ps(now_ps)
        self.queue.resume(now_ps)
        held, self.held = self.held, []
        return held

    def paused_ps(self, now_ps: int) -> int:
        """Return how long the queue has been paused until now."""
        return self._paused_ps + (now_ps - self._since_ps if self.queue.is_paused else 0)
