"""The event loop of a real-time emulation: one thread, so that nothing overlaps."""

import selectors
import time
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from fattree.units import NS_PER_SECOND

# The end of a process, which `is_over` checks, is noticed so late at most.
LONGEST_WAIT_SECONDS = 0.5
Action = Callable[[], object]


class Loop:
    """Calls actions that are due (CLOCK_MONOTONIC, nanoseconds), and readers of descriptors."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self._timers: list[tuple[int, int, Action]] = []
        self._sequence = 0

    def at(self, time_ns: int, action: Action) -> None:
        """Call `action` at a time.

        Those of equal times in the order in which they were asked for.
        """
        # Heaps are not stable, and actions cannot be compared.
        self._sequence += 1
        heappush(self._timers, (time_ns, self._sequence, action))

    def watch(self, source: Any, action: Action) -> None:
        """Call `action` whenever a descriptor is readable."""
        self.selector.register(source, selectors.EVENT_READ, action)

    def unwatch(self, source: Any) -> None:
        """Forget a descriptor."""
        self.selector.unregister(source)

    def run(self, is_over: Callable[[], bool]) -> None:
        """Serve until `is_over`."""
        while not is_over():
            for key, _ in self.selector.select(self._wait_seconds()):
                key.data()

            # Timers that an action adds for a time past are served at once.
            while self._timers and self._timers[0][0] <= time.monotonic_ns():
                heappop(self._timers)[2]()

    def close(self) -> None:
        """Release the selector."""
        self.selector.close()

    def _wait_seconds(self) -> float:
        if not self._timers:
            return LONGEST_WAIT_SECONDS

        wait = (self._timers[0][0] - time.monotonic_ns()) / NS_PER_SECOND
        return min(max(wait, 0), LONGEST_WAIT_SECONDS)
