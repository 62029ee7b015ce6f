"""Messages about a compilation, on stderr: its subject, and its duration."""

import threading
from typing import Any

from numba.core import event

from fattree import signs_of_life

COMPILING = "numba:compile"

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

        signs_of_life.tell(f"compiling {name}, once (up to a minute) ...")
        self._ends[function, threading.get_ident()] = signs_of_life.begin_signs(f"compiling {name}")

    def on_end(self, event: event.Event) -> None:
        # Also of a compilation that failed.
        function = event.data["dispatcher"].py_func
        end = self._ends.pop((function, threading.get_ident()), None)
        if end is not None:
            end.set()
