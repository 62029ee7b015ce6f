"""Room for recursion: programs nest deeper than Python's own stack allows."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

STACK_BYTES = 256 << 20
"""Of virtual memory: what is not used is never taken."""

MAX_FRAMES = 150_000
"""Each takes about 500 bytes of the stack, and up to 1,500 where C calls back."""


class _Call(threading.Thread, Generic[T]):
    def __init__(self, function: Callable[[], T]) -> None:
        super().__init__(daemon=True)
        self._function = function
        self.result: T | None = None
        self.failure: BaseException | None = None

    def run(self) -> None:
        """Call the function and keep its result or exception."""
        try:
            self.result = self._function()
        except BaseException as error:
            self.failure = error


def with_deep_stack(function: Callable[[], T]) -> T:
    """Return a function's result, or raise its exception, called with a large stack."""
    limit = sys.getrecursionlimit()
    size = threading.stack_size(STACK_BYTES)
    call = _Call(function)
    # Before the thread starts, which may be deep in the program at once. The limit is that of the
    # interpreter as a whole, so it holds no longer than needed.
    sys.setrecursionlimit(MAX_FRAMES)
    try:
        call.start()
        threading.stack_size(size)
        call.join()
    except RuntimeError:
        # No memory for the stack, as under a limit: most programs need none.
        sys.setrecursionlimit(limit)
        return function()
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(limit)

    if call.failure is not None:
        raise call.failure

    return call.result  # type: ignore[return-value]
