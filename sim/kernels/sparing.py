"""Compilations with little work in vain, which was a seventh of their time.

Python's collector of garbage looks through all objects of the compiler, again and again, and finds
few to remove. And numba tries all ways to read a call: each way that fails makes a message in
colours, which is not shown.
"""

import gc

from numba.core import config, event

from sim.kernels.telling import COMPILING

# New objects between two searches; such searches between two of older objects, and of the oldest.
THRESHOLDS = (50_000, 10, 1000)


class _Sparing(event.Listener):
    """Listener to numba's compilations: the outermost makes searches for garbage rare."""

    # numba compiles in one thread at a time.
    def __init__(self) -> None:
        self._depth = 0
        self._before = gc.get_threshold()

    def on_start(self, event: event.Event) -> None:
        if self._depth == 0:
            self._before = gc.get_threshold()
            gc.set_threshold(*THRESHOLDS)

        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        # Also of a compilation that failed.
        self._depth -= 1
        if self._depth == 0:
            gc.set_threshold(*self._before)


def spare() -> None:
    """Make searches for garbage rare, and messages plain, in all compilations of this process."""
    config.DISABLE_ERROR_MESSAGE_HIGHLIGHTING = 1
    event.register(COMPILING, _Sparing())
