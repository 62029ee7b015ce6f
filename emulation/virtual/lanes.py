"""The queue of a port that trims: headers and NACKs in a lane that overtakes the rest.

The lane has priority and does not interrupt: what is in it goes after the packet that is being
sent, in its own order, and all else waits longer by that. It has room for as many bytes as the
queue, and neither counts the other's. A packet is being sent from the instant of its start on.
"""

from collections import deque
from dataclasses import dataclass

from fattree.units import PS_PER_SECOND


@dataclass(slots=True)
class Passage:
    """A packet on its way through a port; both times grow where it gives way to others."""

    size: int
    start_ps: int
    departure_ps: int
    is_urgent: bool = False


class LaneQueue:
    """A drop-tail queue and its lane, in front of a link.

    As `softswitch.queue.OutputQueue`, but for the lane, and that departures may come later than
    foreseen.
    """

    __slots__ = ("_capacity", "_free_ps", "_gap_bytes", "_lane", "_rate_bps", "_waiting", "drops")

    def __init__(self, rate_bps: int, capacity_bytes: int, gap_bytes: int) -> None:
        self._rate_bps = rate_bps
        self._capacity = capacity_bytes
        self._gap_bytes = gap_bytes
        self._waiting: deque[Passage] = deque()
        self._lane: deque[Passage] = deque()
        self._free_ps = 0
        self.drops = 0

    def offer(self, now_ps: int, size: int) -> Passage | None:
        """Queue a packet; return None where it does not fit."""
        if self.occupancy_bytes(now_ps) + size > self._capacity:
            return None

        start_ps = max(self._free_ps, now_ps)
        self._free_ps = start_ps + self.tx_ps(size + self._gap_bytes)
        passage = Passage(size, start_ps, start_ps + self.tx_ps(size))
        self._waiting.append(passage)
        return passage

    def hurry(self, now_ps: int, size: int) -> tuple[Passage, int] | None:
        """Put a packet into the lane; return None where it does not fit.

        Return also how many byte picoseconds longer all others wait.
        """
        if _bytes(self._lane, now_ps) + size > self._capacity:
            return None

        slot_ps = self.tx_ps(size + self._gap_bytes)
        later = [each for each in self._waiting if each.start_ps > now_ps]
        start_ps = later[0].start_ps if later else max(self._free_ps, now_ps)
        for each in later:
            each.start_ps += slot_ps
            each.departure_ps += slot_ps

        self._free_ps = max(self._free_ps, now_ps) + slot_ps
        passage = Passage(size, start_ps, start_ps + self.tx_ps(size), is_urgent=True)
        self._lane.append(passage)
        return passage, slot_ps * sum(each.size for each in later)

    def tx_ps(self, size: int) -> int:
        """Return how long `size` bytes hold the link, in picoseconds, rounded up."""
        return -(-size * 8 * PS_PER_SECOND // self._rate_bps)

    def occupancy_bytes(self, now_ps: int) -> int:
        """Return the bytes of packets that have not completely left, the lane's left out."""
        return _bytes(self._waiting, now_ps)

    def depth_packets(self, now_ps: int) -> int:
        """Return how many packets have not completely left, the lane's left out."""
        _bytes(self._waiting, now_ps)
        return len(self._waiting)


def _bytes(waiting: deque[Passage], now_ps: int) -> int:
    """Return the bytes of packets that have not completely left; forget the others."""
    while waiting and waiting[0].departure_ps <= now_ps:
        waiting.popleft()

    return sum(each.size for each in waiting)
