"""A memory that all ports of a switch share, with a dynamic threshold (Choudhury and Hahne, 1998).

Whoever comes finds room where its queue holds no more than alpha times what is free.
"""

from __future__ import annotations

from ofan_p4.softswitch.queue import OutputQueue, Passage


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
        """Take back what has left queues by now."""
        self.held = sum(queue.occupancy_bytes(now_ps) for queue in self._queues)

    def most(self, own: int) -> int:
        """Return what a user may hold that holds `own` bytes."""
        free = self._size - self.held
        return min(self._alpha * free >> 16, own + free)


class SharedQueue(OutputQueue):
    """A queue whose limit is what a shared memory leaves it when a packet comes."""

    __slots__ = ("_memory",)

    def __init__(self, rate_bps: int, memory: SharedMemory, gap_bytes: int = 0) -> None:
        super().__init__(rate_bps, 0, gap_bytes=gap_bytes)
        self._memory = memory
        memory.add(self)

    def offer(self, now_ps: int, size: int, is_urgent: bool = False) -> Passage | None:
        """Take in a packet; return its way through the port, None if dropped."""
        self._memory.settle(now_ps)
        self._capacity_bytes = self._memory.most(self._occupancy_bytes)
        return super().offer(now_ps, size, is_urgent)
