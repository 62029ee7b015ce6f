"""A port that the far end of its link may pause (IEEE 802.1Qbb), and that sends pauses itself.

Packets that have not begun when a pause comes lose their start, and get a new start when the pause
ends. Control frames go into the lane: after the packet that is being sent, ahead of all others,
whether the port is paused or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ofan_p4.softswitch.ports.queue import OutputQueue, Passage

# Later than any time, and a time may be added to it without leaving 64 bits.
NEVER = 2**62


@dataclass(slots=True)
class Held(Passage):
    """A packet's way through a port, and when the link is free behind it.

    A pause has held a packet that `is_held`; a packet that `is_dropped` was dropped while it
    waited.
    """

    free_ps: int = NEVER
    is_held: bool = False
    is_dropped: bool = False


class Buffer:
    """The bytes that have come in by one link and have not left the switch.

    It holds `most`, pauses the link when it has more than `pause_above`, and lets it go on when it
    has `resume_at` or less. `waiting` counts its packets by the port at which they wait.
    """

    __slots__ = ("_pause_above", "_resume_at", "held", "is_pausing", "most", "waiting")

    def __init__(self, most: int, pause_above: int, resume_at: int) -> None:
        self.most = most
        self._pause_above = pause_above
        self._resume_at = resume_at
        self.held = 0
        self.is_pausing = False
        self.waiting: Counter[int] = Counter()

    def has_room(self, size: int) -> bool:
        """Return whether a packet fits."""
        return self.held + size <= self.most

    def take(self, size: int, port: int) -> bool:
        """Take a packet in; return whether the link is to be paused now."""
        is_now = self._count_in(size) and not self.is_pausing
        self.waiting[port] += 1
        self.is_pausing |= is_now
        return is_now

    def give_back(self, size: int, port: int) -> bool:
        """Let a packet go; return whether the link may go on now."""
        self.waiting[port] -= 1
        is_now = self._count_out(size) and self.is_pausing
        self.is_pausing &= not is_now
        return is_now

    def _count_in(self, size: int) -> bool:
        """Count a packet; return whether that is more than there may be of a link that sends."""
        self.held += size
        return self.held > self._pause_above

    def _count_out(self, size: int) -> bool:
        """Take a packet off; return whether a paused link may go on."""
        self.held -= size
        return self.held <= self._resume_at


class PausableQueue(OutputQueue):
    """A queue without limit, as buffers belong to where packets come in, that may be paused.

    `byte_ps` has the packets that have left, and of each that waits its bytes times the time at
    which it came, taken off: with `occupancy_bytes` times now it is the integral until now.
    """

    __slots__ = ("_is_paused", "_left_free_ps")

    def __init__(self, rate_bps: int, gap_bytes: int = 0) -> None:
        super().__init__(rate_bps, None, gap_bytes=gap_bytes)
        self._is_paused = False
        self._left_free_ps = 0

    @property
    def is_paused(self) -> bool:
        """Whether nothing but control frames begins."""
        return self._is_paused

    def offer(self, now_ps: int, size: int, is_urgent: bool = False) -> Held:
        """Take in a packet; return its way through the port, without times where it is paused."""
        assert not is_urgent
        self._let_leave(now_ps)
        passage = Held(size, NEVER, NEVER, is_held=self._is_paused)
        if not self._is_paused:
            self._free_ps = self._start([passage], max(self._free_ps, now_ps))

        self._occupancy_bytes += size
        self.max_bytes = max(self.max_bytes, self._occupancy_bytes)
        self.byte_ps -= size * now_ps
        self._waiting.append(passage)
        return passage

    def tell(self, now_ps: int, size: int) -> Passage:
        """Take in a control frame; return its way through the port, which nothing changes."""
        self._let_leave(now_ps)
        passage = Held(size, NEVER, NEVER, is_urgent=True)
        self._lane.append(passage)
        self._serve_anew(now_ps)
        return passage

    def pause(self, now_ps: int) -> None:
        """Let no packet begin from now on; a packet that has begun is sent to its end."""
        self._is_paused = True
        self._let_leave(now_ps)
        for passage in self._unbegun(now_ps):
            passage.is_held = True

        self._serve_anew(now_ps)

    def resume(self, now_ps: int) -> None:
        """Let waiting packets begin again."""
        self._is_paused = False
        self._let_leave(now_ps)
        self._serve_anew(now_ps)

    def set_rate_bps(self, now_ps: int, rate_bps: int) -> None:
        """Set the rate of packets that start from now on, in place of foreseen rates."""
        self._let_leave(now_ps)
        self._rates_ahead = []
        self._rate_bps = rate_bps
        self._serve_anew(now_ps)

    def clear(self, now_ps: int) -> list[Held]:
        """Drop all packets that have not begun; return them in order."""
        self._let_leave(now_ps)
        dropped = list(self._unbegun(now_ps))
        for passage in dropped:
            self._waiting.pop()
            passage.is_dropped = True
            self._occupancy_bytes -= passage.size
            self.byte_ps += passage.size * now_ps

        self._serve_anew(now_ps)
        return dropped

    def _unbegun(self, now_ps: int) -> Iterator[Held]:
        return (passage for passage in self._waiting if passage.start_ps > now_ps)  # type: ignore[misc]

    def _serve_anew(self, now_ps: int) -> None:
        """Give times to all packets that have not begun: the lane first, then the queue."""
        lines: list[Held] = [*self._lane, *self._waiting]  # type: ignore[list-item]
        begun = (passage.free_ps for passage in lines if passage.start_ps <= now_ps)
        free_ps = max(now_ps, self._left_free_ps, *begun)
        frames = [passage for passage in lines if passage.is_urgent and passage.start_ps > now_ps]
        free_ps = self._start(frames, free_ps)
        unbegun = list(self._unbegun(now_ps))
        if self._is_paused:
            for passage in unbegun:
                passage.start_ps = passage.departure_ps = passage.free_ps = NEVER
        else:
            free_ps = self._start(unbegun, free_ps)

        self._free_ps = free_ps

    def _start(self, passages: Iterable[Held], free_ps: int) -> int:
        """Start these one after the other; return when the link is free again."""
        for passage in passages:
            passage.start_ps = free_ps
            passage.departure_ps, free_ps = self._sent(free_ps, passage.size)
            passage.free_ps = free_ps

        return free_ps

    def _let_leave(self, now_ps: int) -> None:
        for line in (self._lane, self._waiting):
            while line and line[0].departure_ps <= now_ps:
                gone = line.popleft()
                self._left_free_ps = max(self._left_free_ps, gone.free_ps)  # type: ignore[attr-defined]
                if not gone.is_urgent:
                    self._occupancy_bytes -= gone.size
                    self.byte_ps += gone.size * gone.departure_ps
