"""An output queue and its link, kept as a log of all that went through."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from tests.naive.wire import Wire


@dataclass(slots=True)
class Passage:
    """A packet's way through a queue: when it came, when it is sent, when its last bit is out."""

    size: int
    enqueued_ps: int
    start_ps: int
    departure_ps: int


@dataclass(slots=True)
class Port:
    """An output queue and its link.

    `log` has every packet that was accepted, `hurried` those with priority: they go before all that
    wait, and wait behind what is being sent and behind each other. `slow` says from when on it is
    like another wire.
    """

    wire: Wire
    slow: list[tuple[int, Wire]] = field(default_factory=list)
    free_ps: int = 0
    max_bytes: int = 0
    drops: int = 0
    marks: int = 0
    lost: int = 0
    trims: int = 0
    log: list[Passage] = field(default_factory=list)
    hurried: list[Passage] = field(default_factory=list)

    def bytes_at(self, now_ps: int) -> int:
        """Return the bytes of the packets without priority that have not completely left."""
        return waiting_bytes(self.log, now_ps)

    def hurried_bytes_at(self, now_ps: int) -> int:
        return waiting_bytes(self.hurried, now_ps)

    def stale_bytes_at(self, then_ps: int) -> int:
        """Return what `bytes_at` said at an instant in the past, before its arrivals."""
        return sum(one.size for one in unsent(self.log, then_ps) if one.enqueued_ps < then_ps)

    def put(self, now_ps: int, size: int) -> Passage:
        """Accept a packet."""
        start_ps = max(self.free_ps, now_ps)
        wire = self.wire_at(start_ps)
        departure_ps = start_ps + wire.sending_ps(size)
        self.free_ps = start_ps + wire.sending_ps(size + wire.gap_bytes)
        passage = Passage(size, now_ps, start_ps, departure_ps)
        self.log.append(passage)
        self.max_bytes = max(self.max_bytes, self.bytes_at(now_ps))
        return passage

    def hurry(self, now_ps: int, size: int) -> Passage:
        """Accept a packet with priority: all that is not being sent yet gives way."""
        slot_ps = self.wire.sending_ps(size + self.wire.gap_bytes)
        waiting = [one for one in self.log if one.start_ps > now_ps]
        start_ps = waiting[0].start_ps if waiting else max(self.free_ps, now_ps)
        for one in waiting:
            one.start_ps += slot_ps
            one.departure_ps += slot_ps

        self.free_ps = max(self.free_ps, now_ps) + slot_ps
        passage = Passage(size, now_ps, start_ps, start_ps + self.wire.sending_ps(size))
        self.hurried.append(passage)
        return passage

    @property
    def packets(self) -> int:
        return len(self.log) + len(self.hurried)

    def wire_at(self, start_ps: int) -> Wire:
        """Return the wire as it is when a transmission starts."""
        return [self.wire, *(wire for since, wire in self.slow if since <= start_ps)][-1]

    @property
    def load_bytes(self) -> int:
        """Return the bytes of all packets that were accepted."""
        return sum(one.size for one in self.log + self.hurried)

    def byte_ps(self, end_ps: int) -> int:
        """Return the integral of the occupancy from 0 to `end_ps`."""
        return sum(one.size * (min(one.departure_ps, end_ps) - one.enqueued_ps) for one in self.log)


def unsent(log: list[Passage], now_ps: int) -> Iterator[Passage]:
    """Return the packets of a queue that have not completely left, the latest first."""
    return takewhile(lambda one: one.departure_ps > now_ps, reversed(log))


def waiting_bytes(log: list[Passage], now_ps: int) -> int:
    """Return their bytes."""
    return sum(one.size for one in unsent(log, now_ps))
