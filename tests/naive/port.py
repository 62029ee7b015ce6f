"""An output queue and its link, stored as a log of all their packets."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, takewhile

from tests.naive.wire import Wire


@dataclass(slots=True)
class Passage:
    """A packet's times in a queue: arrival, start of transmission, departure of its last bit.

    From `free_ps` on the link is free again. `turn` counts all packets before it.
    """

    size: int
    enqueued_ps: int
    turn: int
    start_ps: int = 0
    departure_ps: int = 0
    free_ps: int = 0


@dataclass(slots=True)
class Port:
    """An output queue and its link: a server with two lines of customers.

    `log` has every packet that was accepted, `hurried` those with priority. A free link takes the
    first packet with priority that came before this instant, else the first packet. `slow` has the
    times from which on another wire counts: the wire at the start of a transmission counts for all
    of it. `is_ahead`: the last packet with priority lets another leave earlier than was computed
    before.
    """

    wire: Wire
    slow: list[tuple[int, Wire]] = field(default_factory=list)
    max_bytes: int = 0
    drops: int = 0
    marks: int = 0
    lost: int = 0
    trims: int = 0
    is_ahead: bool = False
    log: list[Passage] = field(default_factory=list)
    hurried: list[Passage] = field(default_factory=list)

    def bytes_at(self, now_ps: int) -> int:
        """Return the bytes of the packets without priority that have not completely left."""
        return waiting_bytes(self.log, now_ps)

    def hurried_bytes_at(self, now_ps: int) -> int:
        return waiting_bytes(self.hurried, now_ps)

    def stale_bytes_at(self, then_ps: int) -> int:
        """Return the value of `bytes_at` at an instant in the past, before its arrivals."""
        return sum(
            passage.size for passage in unsent(self.log, then_ps) if passage.enqueued_ps < then_ps
        )

    def put(self, now_ps: int, size: int) -> Passage:
        """Accept a packet."""
        passage = Passage(size, now_ps, self.packets)
        self.send(passage, max(now_ps, self.free_ps))
        self.log.append(passage)
        self.max_bytes = max(self.max_bytes, self.bytes_at(now_ps))
        return passage

    def hurry(self, now_ps: int, size: int) -> Passage:
        """Accept a packet with priority, and order all packets that wait again."""
        passage = Passage(size, now_ps, self.packets)
        free_ps = max((begun.free_ps for begun in self.begun(now_ps)), default=0)
        plain = self.unbegun(self.log, now_ps)
        urgent = [*self.unbegun(self.hurried, now_ps), passage]
        self.hurried.append(passage)
        before = [
            (waiting, waiting.departure_ps)
            for waiting in (*plain, *urgent)
            if waiting is not passage
        ]

        while plain or urgent:
            first = min(plain[:1] + urgent[:1], key=lambda waiting: waiting.turn)
            now_ps = max(free_ps, first.enqueued_ps)
            if urgent and urgent[0].enqueued_ps < now_ps:
                first = urgent[0]
            (urgent if urgent and first is urgent[0] else plain).pop(0)
            self.send(first, now_ps)
            free_ps = first.free_ps

        self.is_ahead = any(waiting.departure_ps < then_ps for waiting, then_ps in before)
        return passage

    def send(self, passage: Passage, start_ps: int) -> None:
        """Start a transmission at a time."""
        wire = self.wire_at(start_ps)
        passage.start_ps = start_ps
        passage.departure_ps = start_ps + wire.sending_ps(passage.size)
        passage.free_ps = start_ps + wire.sending_ps(passage.size + wire.gap_bytes)

    def begun(self, now_ps: int) -> list[Passage]:
        """Return the last packet of each line that is being sent or has been."""
        lines = (self.log, self.hurried)
        begun = (
            (passage for passage in reversed(line) if passage.start_ps <= now_ps) for line in lines
        )
        return [last for line in begun for last in islice(line, 1)]

    def unbegun(self, line: list[Passage], now_ps: int) -> list[Passage]:
        """Return the packets of a line that are not being sent yet, in order."""
        return [*takewhile(lambda packet: packet.start_ps > now_ps, reversed(line))][::-1]

    @property
    def free_ps(self) -> int:
        """Return when the link will be free."""
        return max((line[-1].free_ps for line in (self.log, self.hurried) if line), default=0)

    @property
    def packets(self) -> int:
        return len(self.log) + len(self.hurried)

    def wire_at(self, start_ps: int) -> Wire:
        """Return the wire as it is when a transmission starts."""
        return [self.wire, *(wire for since, wire in self.slow if since <= start_ps)][-1]

    @property
    def load_bytes(self) -> int:
        """Return the bytes of all packets that were accepted."""
        return sum(passage.size for passage in self.log + self.hurried)

    def byte_ps(self, end_ps: int) -> int:
        """Return the integral of the occupancy from 0 to `end_ps`."""
        return sum(
            passage.size * (min(passage.departure_ps, end_ps) - passage.enqueued_ps)
            for passage in self.log
        )


def unsent(log: list[Passage], now_ps: int) -> Iterator[Passage]:
    """Return the packets of a queue that have not completely left, the latest first."""
    return takewhile(lambda packet: packet.departure_ps > now_ps, reversed(log))


def waiting_bytes(log: list[Passage], now_ps: int) -> int:
    """Return the bytes of packets."""
    return sum(passage.size for passage in unsent(log, now_ps))
