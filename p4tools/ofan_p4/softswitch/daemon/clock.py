"""A switch's clock."""

from __future__ import annotations

import time

PS_PER_NS = 1000


class Clock:
    """Monotonic time in picoseconds since the clock was made."""

    def __init__(self) -> None:
        self.start_ns = time.monotonic_ns()

    def __call__(self) -> int:
        """Return the time in picoseconds."""
        return (time.monotonic_ns() - self.start_ns) * PS_PER_NS
