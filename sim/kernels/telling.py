"""Messages about a compilation, on stderr: its subject, and its duration.

Also where no terminal is: a log that stands still for a minute looks like a program that does.
"""

import sys
import threading
import time
from typing import Any

from numba.core import event

COMPILING = "numba:compile"
# How often a sign of life comes.
EVERY_S = 15.0
MOST_EVERY_S = 60.0

# Names of long-lasting functions for users: the compiler's events have the function alone.
_names: dict[Any, str] = {}


def name_long(function: Any, long_name: str) -> None:
    """Tell users on stderr, by `long_name`, when this function is compiled."""
    if not _names:
        event.register(COMPILING, _Telling())

    _names[function] = long_name


class _Telling(event.Listener):
    """Listener to numba's compilations: reports those with a name, and again while they last."""

    def __init__(self) -> None:
        # Compilations can begin in several threads, of several functions.
        self._ends: dict[tuple[Any, int], threading.Event] = {}

    def on_start(self, event: event.Event) -> None:
        function = event.data["dispatcher"].py_func
        name = _names.get(function)
        if name is None:
            return

        _tell(f"compiling {name}, once (up to a minute) ...")
        end = self._ends[function, threading.get_ident()] = threading.Event()
        # A daemon: who interrupts a compilation does not wait for it.
        threading.Thread(target=_remind, args=(name, end), daemon=True).start()

    def on_end(self, event: event.Event) -> None:
        # Also of a compilation that failed.
        function = event.data["dispatcher"].py_func
        end = self._ends.pop((function, threading.get_ident()), None)
        if end is not None:
            end.set()


def _remind(name: str, end: threading.Event) -> None:
    began = time.monotonic()
    pause = EVERY_S
    # Rarer and rarer: `make setup` compiles in two processes, and their lines are read together.
    while not end.wait(pause):
        pause = min(2 * pause, MOST_EVERY_S)
        _tell(f"still compiling {name}, for {time.monotonic() - began:.0f} s ...")


def _tell(line: str) -> None:
    # One write: several processes can share a terminal.
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
