"""Signs of life of long work on stderr, also where no terminal is.

A log that stands still for a minute looks like a program that does.
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

# How often a sign comes at first, and at most at last.
EVERY_S = 15.0
MOST_EVERY_S = 60.0


@contextmanager
def signs_of_life(work: str) -> Iterator[None]:
    """Tell again and again that some work, as in "compiling kernels", still lasts."""
    end = begin_signs(work)
    try:
        yield
    finally:
        end.set()


def begin_signs(work: str) -> threading.Event:
    """Begin the signs of some work; the event that is returned ends them."""
    end = threading.Event()
    # A daemon: an interrupted process does not wait for it.
    threading.Thread(target=_remind, args=(work, end), daemon=True).start()
    return end


def _remind(work: str, end: threading.Event) -> None:
    began = time.monotonic()
    pause = EVERY_S
    # Rarer and rarer: `make setup` compiles in two processes, and their lines are read together.
    while not end.wait(pause):
        pause = min(2 * pause, MOST_EVERY_S)
        tell(f"still {work}, for {time.monotonic() - began:.0f} s ...")


def tell(line: str) -> None:
    """Write a line to stderr."""
    # One write: several processes can share a terminal.
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
