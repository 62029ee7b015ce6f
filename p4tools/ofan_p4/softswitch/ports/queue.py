"""The port's body for frames: a queue, its lane, a rate, in exact integer picoseconds.

The switch process and the virtual-time network use this class and nothing else, so that both drop
and delay alike. The simulator has a body of its own (`sim/kernels/ports.py`), records inside
compiled kernels that know the sizes of a run. This body serves real packets, singly and of any
size: limits in packets as BMv2 has them, rates in packets per second, depths for the program's
metadata. The rules are the same (`docs/decisions/two-ports.md`), and the switch imports nothing of
the simulator.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from ofan_p4.softswitch.base.units import PS_PER_SECOND

BIT_PS_PER_BYTE = 8 * PS_PER_SECOND


@dataclass(slots=True)
class Passage:
    """A packet's way through a port: its bytes there, the times of its start and end.

    Both times move while it waits: where it gives way to others, or where the rate changes.
    """

    size: int
    start_ps: int
    departure_ps: int
    is_urgent: bool = False


class OutputQueue:
    """A drop-tail FIFO in front of a link, and a lane with packets that go before all others.

    A packet occupies its `size` bytes until its last bit has left; the gap that follows it keeps
    the link busy but takes no room. `now_ps` must not run backwards from call to call. Without a
    rate every packet leaves at once; a capacity of None is unlimited. A rate is either in bit/s or
    in packets/s. The rate at which a transmission starts holds to its last bit.

    A packet without room is cut to `trim_to` bytes; 0 is a port that drops it. Cut packets, and
    packets that are urgent from the start, go into the lane: after the packet that is being sent
    (from the instant of its start on) and those in the lane before, ahead of all others, which
    start later for it. The lane has room for as many bytes as the queue, and neither
    counts the other's.

    Readings: `drops`; `max_bytes`, the most that has waited; `byte_ps`, the bytes of each packet
    times its stay, whole stays; `has_hastened`, whether the last urgent packet let others leave
    earlier than foreseen, which a link that is about to be faster may do. They leave the lane out.
    """

    __slots__ = (
        "_capacity_bytes",
        "_capacity_packets",
        "_free_ps",
        "_gap_bytes",
        "_lane",
        "_lane_bytes",
        "_lane_capacity_bytes",
        "_occupancy_bytes",
        "_ps_per_packet",
        "_rate_bps",
        "_rates_ahead",
        "_trim_to",
        "_waiting",
        "byte_ps",
        "drops",
        "has_hastened",
        "max_bytes",
    )

    def __init__(
        self,
        rate_bps: int | None,
        capacity_bytes: int | None,
        capacity_packets: int | None = None,
        gap_bytes: int = 0,
        rate_pps: int | None = None,
        trim_to: int = 0,
    ) -> None:
        if rate_bps is not None and rate_pps is not None:
            raise ValueError("a queue has a rate in bit/s or in packets/s, not both")

        for name, rate in (("rate_bps", rate_bps), ("rate_pps", rate_pps)):
            if rate is not None and rate <= 0:
                raise ValueError(f"{name} must be positive, not {rate}")

        self._rate_bps = rate_bps
        # Rounded up, like every duration here: a link is never faster than its rate.
        self._ps_per_packet = 0 if rate_pps is None else -(-PS_PER_SECOND // rate_pps)
        self._capacity_bytes = capacity_bytes
        self._capacity_packets = capacity_packets
        self._gap_bytes = gap_bytes
        self._trim_to = trim_to
        self._rates_ahead: list[tuple[int, int]] = []
        # In the order in which they leave, each by itself.
        self._waiting: deque[Passage] = deque()
        self._lane: deque[Passage] = deque()
        self._occupancy_bytes = 0
        self._lane_bytes = 0
        self._lane_capacity_bytes = capacity_bytes
        self._free_ps = 0
        self.drops = 0
        self.max_bytes = 0
        self.byte_ps = 0
        self.has_hastened = False

    @property
    def has_rate(self) -> bool:
        """Whether packets take time to leave."""
        return self._rate_bps is not None or self._ps_per_packet > 0

    def set_rate_pps(self, rate_pps: int | None) -> None:
        """Set the rate, in packets per second, for packets from now on; None sends them at once."""
        self._rate_bps = None
        self._ps_per_packet = 0 if rate_pps is None else -(-PS_PER_SECOND // rate_pps)

    def foresee_rates(self, changes: Iterable[tuple[int, int]]) -> None:
        """Set another rate for packets that start at a time or later.

        `changes` are (time, rate in bit/s), in order, in place of those foreseen before.
        """
        self._rates_ahead = list(changes)

    def set_rate_bps(self, now_ps: int, rate_bps: int) -> None:
        """Set the rate of packets that start from now on, in place of foreseen rates."""
        self._let_leave(now_ps)
        self._rates_ahead = []
        self._rate_bps = rate_bps

        # Not by lanes: a packet of the queue that starts this very instant is ahead of the lane.
        unsent = [
            passage for passage in (*self._lane, *self._waiting) if passage.start_ps >= now_ps
        ]
        unsent.sort(key=_start)
        if unsent:
            self._send_anew(unsent, unsent[0].start_ps)

    def set_depth_packets(self, packets: int) -> None:
        """Set how many packets may wait at most, instead of the limit before."""
        self._capacity_bytes = self._lane_capacity_bytes = None
        self._capacity_packets = packets

    def offer(self, now_ps: int, size: int, is_urgent: bool = False) -> Passage | None:
        """Take in a packet of `size` bytes; return its way through the port, None if dropped."""
        self._let_leave(now_ps)
        occupancy = self._occupancy_bytes + size
        if is_urgent or self._is_full(occupancy):
            return self._hurry(now_ps, size, is_urgent)

        # The link is free after the gap of the packet before, or is waiting already.
        start_ps = self._free_ps
        if start_ps < now_ps:
            start_ps = now_ps

        departure_ps, self._free_ps = self._sent(start_ps, size)
        self._occupancy_bytes = occupancy
        # A queue is longest just after an arrival, so no other moment need be looked at. Without a
        # rate nothing ever waits.
        if occupancy > self.max_bytes and departure_ps > now_ps:
            self.max_bytes = occupancy

        self.byte_ps += size * (departure_ps - now_ps)
        # FIFO: departures come in order, so that the first in line is the first to go.
        passage = Passage(size, start_ps, departure_ps)
        self._waiting.append(passage)
        return passage

    def tx_ps(self, start_ps: int, size: int) -> int:
        """Return how long `size` bytes hold the link from a start on, in ps, rounded up."""
        return self._sent(start_ps, size)[0] - start_ps

    def occupancy_bytes(self, now_ps: int) -> int:
        """Return the bytes, without gaps, of packets that have not completely left at `now_ps`."""
        self._let_leave(now_ps)
        return self._occupancy_bytes

    def depth_packets(self, now_ps: int) -> int:
        """Return how many packets have not completely left at `now_ps`."""
        self._let_leave(now_ps)
        return len(self._waiting)

    def _is_full(self, occupancy: int) -> bool:
        if self._capacity_bytes is not None and occupancy > self._capacity_bytes:
            return True

        return self._capacity_packets is not None and len(self._waiting) >= self._capacity_packets

    def _let_leave(self, now_ps: int) -> None:
        waiting = self._waiting
        while waiting and waiting[0].departure_ps <= now_ps:
            self._occupancy_bytes -= waiting.popleft().size

    def _sent(self, start_ps: int, size: int) -> tuple[int, int]:
        """Return when the last bit of a packet that starts then is out, and the link free."""
        rate_bps = self._rate_at(start_ps) if self._rates_ahead else self._rate_bps
        if rate_bps is None:
            end_ps = start_ps + self._ps_per_packet
            return end_ps, end_ps

        # Both rounded up: the negative, rounded down.
        return (
            start_ps - -size * BIT_PS_PER_BYTE // rate_bps,
            start_ps - -(size + self._gap_bytes) * BIT_PS_PER_BYTE // rate_bps,
        )

    def _rate_at(self, start_ps: int) -> int | None:
        later = bisect_right(self._rates_ahead, start_ps, key=_since)
        return self._rates_ahead[later - 1][1] if later else self._rate_bps

    def _hurry(self, now_ps: int, size: int, is_urgent: bool) -> Passage | None:
        """Take a packet into the lane, cut where it is not urgent; return None if dropped."""
        lane = self._lane
        while lane and lane[0].departure_ps <= now_ps:
            self._lane_bytes -= lane.popleft().size

        # A packet that is no longer than the cut size cannot be cut: an ACK is dropped.
        trim_to = self._trim_to
        limit = self._lane_capacity_bytes
        is_taken = trim_to > 0 and (is_urgent or size > trim_to)
        if not is_taken or (limit is not None and self._lane_bytes + trim_to > limit):
            self.drops += 1
            return None

        # The lane's own packets go before the first that waits, and it starts after them.
        unsent = [passage for passage in self._waiting if passage.start_ps > now_ps]
        start_ps = unsent[0].start_ps if unsent else max(self._free_ps, now_ps)
        passage = Passage(trim_to, start_ps, departure_ps=start_ps, is_urgent=True)
        lane.append(passage)
        self._lane_bytes += trim_to
        self.has_hastened = self._send_anew([passage, *unsent], start_ps)
        return passage

    def _send_anew(self, passages: Iterable[Passage], free_ps: int) -> bool:
        """Start these packets, the last ones of the port, one after the other from `free_ps` on.

        Return whether any leaves earlier than foreseen.
        """
        # A link never idles while something waits. A later start may mean an earlier end: where a
        # slow link is about to be fast again.
        is_earlier = False
        for passage in passages:
            before_ps = passage.departure_ps
            passage.start_ps = free_ps
            passage.departure_ps, free_ps = self._sent(free_ps, passage.size)
            if not passage.is_urgent:
                self.byte_ps += passage.size * (passage.departure_ps - before_ps)
                is_earlier |= passage.departure_ps < before_ps

        self._free_ps = free_ps
        return is_earlier


def _since(change: tuple[int, int]) -> int:
    return change[0]


def _start(passage: Passage) -> int:
    return passage.start_ps
