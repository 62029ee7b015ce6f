"""A memory that all ports of a switch share, with a dynamic threshold (Choudhury and Hahne, 1998).

A packet is admitted while its queue holds at most alpha times the free memory.
"""

from __future__ import annotations

from ofan_p4.softswitch.ports.pausable import Buffer
from ofan_p4.softswitch.ports.queue import OutputQueue, Passage


class SharedMemory:
    """So many bytes, of which `held` are taken; alpha is in parts of 2**16."""

    __slots__ = ("_alpha", "_queues", "_size", "held")

    def __init__(self, size: int, alpha: int) -> None:
        self._size = size
        self._alpha = alpha
        self._queues: list[SharedQueue] = []
        self.held = 0

    def add(self, queue: SharedQueue) -> None:
        """Let a queue take from this memory."""
        self._queues.append(queue)

    def settle(self, now_ps: int) -> None:
        """Take back the bytes that have left queues by now."""
        self.held = sum(queue.occupancy_bytes(now_ps) for queue in self._queues)

    def most(self, held_bytes: int) -> int:
        """Return the limit of a user that holds `held_bytes`."""
        free = self._size - self.held
        return min(self._alpha * free >> 16, held_bytes + free)


class SharedQueue(OutputQueue):
    """A queue with the limit that a shared memory leaves it when a packet comes.

    Its lane for cut packets has `lane_bytes` of its own.
    """

    __slots__ = ("_memory",)

    def __init__(
        self,
        rate_bps: int,
        memory: SharedMemory,
        gap_bytes: int = 0,
        lane_bytes: int = 0,
        trim_to: int = 0,
    ) -> None:
        super().__init__(rate_bps, lane_bytes, gap_bytes=gap_bytes, trim_to=trim_to)
        self._memory = memory
        memory.add(self)

    def offer(self, now_ps: int, size: int, is_urgent: bool = False) -> Passage | None:
        """Take in a packet; return its way through the port, None if dropped."""
        self._memory.settle(now_ps)
        self._capacity_bytes = self._memory.most(self._occupancy_bytes)
        return super().offer(now_ps, size, is_urgent)


class SharedBuffer(Buffer):
    """A buffer with its bytes, except the headroom, in the memory that a switch's buffers share.

    A packet goes into the headroom if the buffer would hold more than alpha times the free memory,
    and pauses the link; `over` bytes are there, and leave first.
    """

    __slots__ = ("_memory", "over")

    def __init__(
        self, capacity: int, pause_above: int, resume_at: int, *, memory: SharedMemory
    ) -> None:
        super().__init__(capacity, pause_above, resume_at)
        self._memory = memory
        self.over = 0

    def has_room(self, size: int) -> bool:
        """Return whether a packet fits."""
        headroom = self.most - self._pause_above
        return not self._is_above(size) or self.over + size <= headroom

    def _is_above(self, size: int) -> bool:
        shared_bytes = self.held - self.over
        return shared_bytes + size > self._memory.most(shared_bytes)

    def _count_in(self, size: int) -> bool:
        is_above = self._is_above(size)
        self.held += size
        if is_above:
            self.over += size
        else:
            self._memory.held += size

        # The packet itself leaves less free.
        return is_above or self._is_above(0)

    def _count_out(self, size: int) -> bool:
        from_headroom = min(self.over, size)
        self.over -= from_headroom
        self.held -= size
        self._memory.held -= size - from_headroom

        # Free memory may be so small that alpha times it, less two packets, is below zero.
        hysteresis = self._pause_above - self._resume_at
        limit = self._memory.most(self.held)
        return self.over == 0 and (self.held == 0 or self.held + hysteresis <= limit)
