"""An output queue and its link, kept as a log of all that went through."""

from dataclasses import dataclass, field

from tests.naive.wire import Wire


@dataclass(slots=True)
class Port:
    """An output queue and its link.

    `log` has (enqueued, last bit left, bytes) of every packet that was accepted. `slow` says from
    when on it is like another wire.
    """

    wire: Wire
    slow: list[tuple[int, Wire]] = field(default_factory=list)
    free_ps: int = 0
    max_bytes: int = 0
    drops: int = 0
    marks: int = 0
    lost: int = 0
    log: list[tuple[int, int, int]] = field(default_factory=list)

    def bytes_at(self, now_ps: int) -> int:
        """Return the bytes of the packets that have not completely left."""
        total = 0
        for _, departure_ps, size in reversed(self.log):
            if departure_ps <= now_ps:
                break
            total += size
        return total

    def stale_bytes_at(self, then_ps: int) -> int:
        """Return what `bytes_at` said at an instant in the past, before its arrivals."""
        return sum(
            size
            for enqueued_ps, departure_ps, size in self.log
            if enqueued_ps < then_ps < departure_ps
        )

    def put(self, now_ps: int, size: int) -> tuple[int, int]:
        """Accept a packet; return when its transmission starts and when its last bit has left."""
        start_ps = max(self.free_ps, now_ps)
        wire = self.wire_at(start_ps)
        departure_ps = start_ps + wire.sending_ps(size)
        self.free_ps = start_ps + wire.sending_ps(size + wire.gap_bytes)
        self.log.append((now_ps, departure_ps, size))
        self.max_bytes = max(self.max_bytes, self.bytes_at(now_ps))
        return start_ps, departure_ps

    def wire_at(self, start_ps: int) -> Wire:
        """Return the wire as it is when a transmission starts."""
        return [self.wire, *(wire for since, wire in self.slow if since <= start_ps)][-1]

    @property
    def load_bytes(self) -> int:
        """Return the bytes of all packets that were accepted."""
        return sum(size for _, _, size in self.log)

    def byte_ps(self, end_ps: int) -> int:
        """Return the integral of the occupancy from 0 to `end_ps`."""
        return sum(
            size * (min(departure_ps, end_ps) - enqueued_ps)
            for enqueued_ps, departure_ps, size in self.log
        )
