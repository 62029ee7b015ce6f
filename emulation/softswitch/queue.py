"""The output queue of a port: drop-tail, one rate, exact integer picoseconds.

The switch process and the virtual-time network use this class and nothing else, so that both drop
and delay alike. The simulator has queues of its own (`sim/kernels/queues.py`), records inside
compiled kernels that know two sizes of packets. This one serves real packets, one by one and of any
size: limits in packets as BMv2 has them, rates in packets per second, depths for the program's
metadata. The rules are the same, and the switch imports nothing of the simulator.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from emulation.softswitch.units import PS_PER_SECOND


class OutputQueue:
    """A drop-tail FIFO in front of a link.

    A packet occupies its `size` bytes until its last bit has left; the gap that follows it keeps
    the link busy but takes no room. `now_ps` must not run backwards from call to call. Without a
    rate every packet leaves at once; a capacity of None is unlimited. A rate is either in bit/s or
    in packets/s.
    """

    __slots__ = (
        "_capacity_bytes",
        "_capacity_packets",
        "_free_at_ps",
        "_gap_bytes",
        "_occupancy_bytes",
        "_ps_per_packet",
        "_rate_bps",
        "_rates_ahead",
        "_waiting",
        "drops",
        "last_start_ps",
    )

    def __init__(
        self,
        rate_bps: int | None,
        capacity_bytes: int | None,
        capacity_packets: int | None = None,
        gap_bytes: int = 0,
        rate_pps: int | None = None,
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
        self._rates_ahead: deque[tuple[int, int]] = deque()
        # (departure, size, start) of each packet.
        self._waiting: deque[tuple[int, int, int]] = deque()
        self._occupancy_bytes = 0
        self._free_at_ps = 0
        self.drops = 0
        self.last_start_ps = 0

    @property
    def has_rate(self) -> bool:
        """Whether packets take time to leave."""
        return self._rate_bps is not None or self._ps_per_packet > 0

    def set_rate_pps(self, rate_pps: int | None) -> None:
        """Let packets from now on leave at this rate, or at once."""
        self._rate_bps = None
        self._ps_per_packet = 0 if rate_pps is None else -(-PS_PER_SECOND // rate_pps)

    def foresee_rates(self, changes: Iterable[tuple[int, int]]) -> None:
        """Let packets whose transmission starts at a time or later leave at another rate.

        `changes` are (time, rate in bit/s), in order, in place of those foreseen before.
        """
        self._rates_ahead = deque(changes)

    def set_rate_bps(self, now_ps: int, rate_bps: int) -> list[tuple[int, int]]:
        """Let packets whose transmission starts from now on leave at this rate, foreseen or not.

        Return the new start and departure of those that wait, the last ones of the queue.
        """
        self._let_leave(now_ps)
        self._rates_ahead.clear()
        self._rate_bps = rate_bps
        waiting = self._waiting
        behind = [waiting.pop() for _ in range(sum(start >= now_ps for *_, start in waiting))]

        # A link never idles while something waits, so what starts later does so one by one.
        free_ps = behind[-1][2] if behind else self._free_at_ps
        moved = []
        for _, size, _ in reversed(behind):
            moved.append((free_ps, free_ps + self.tx_ps(size)))
            waiting.append((moved[-1][1], size, free_ps))
            self.last_start_ps = free_ps
            free_ps += self.tx_ps(size + self._gap_bytes)

        self._free_at_ps = free_ps
        return moved

    def set_depth_packets(self, packets: int) -> None:
        """Let at most so many packets wait, whatever the limit was before."""
        self._capacity_bytes = None
        self._capacity_packets = packets

    def offer(self, now_ps: int, size: int) -> int | None:
        """Return when the last bit of a packet of `size` bytes will have left, None if dropped."""
        self._let_leave(now_ps)
        if self._is_full(size):
            self.drops += 1
            return None

        # The link is free after the gap of the packet before, or is waiting already.
        start = self._free_at_ps
        if start < now_ps:
            start = now_ps

        while self._rates_ahead and self._rates_ahead[0][0] <= start:
            self._rate_bps = self._rates_ahead.popleft()[1]

        departure = start + self.tx_ps(size)
        self._free_at_ps = start + self.tx_ps(size + self._gap_bytes)
        self.last_start_ps = start
        self._occupancy_bytes += size
        # FIFO: departures come in order, so that the first in line is the first to go.
        self._waiting.append((departure, size, start))

        return departure

    def tx_ps(self, size: int) -> int:
        """Return how long `size` bytes hold the link, in picoseconds, rounded up."""
        if self._rate_bps is None:
            return self._ps_per_packet

        return -(-size * 8 * PS_PER_SECOND // self._rate_bps)

    def occupancy_bytes(self, now_ps: int) -> int:
        """Return the bytes, without gaps, of packets that have not completely left at `now_ps`."""
        self._let_leave(now_ps)
        return self._occupancy_bytes

    def depth_packets(self, now_ps: int) -> int:
        """Return how many packets have not completely left at `now_ps`."""
        self._let_leave(now_ps)
        return len(self._waiting)

    def _is_full(self, size: int) -> bool:
        if self._capacity_bytes is not None and self._occupancy_bytes + size > self._capacity_bytes:
            return True

        return self._capacity_packets is not None and len(self._waiting) >= self._capacity_packets

    def _let_leave(self, now_ps: int) -> None:
        while self._waiting and self._waiting[0][0] <= now_ps:
            self._occupancy_bytes -= self._waiting.popleft()[1]
