"""Timeouts for requests sent to many switches at once: a frozen switch must not delay the others.

The time of an answer depends on the machine and its load; so the answers of the other switches are
the measure, and no clock alone.
"""

import time
from collections.abc import Collection
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

# A switch may take so many times as long as half of all switches have taken.
FACTOR = 4
# From how many on half of them say anything.
COMPARABLE = 3


def late(futures: Collection["Future[Any]"], least_s: float) -> set["Future[Any]"]:
    """Wait for answers; return those that are still not there when it makes no sense to wait.

    That is FACTOR times as long as half of them have needed, and at least `least_s` longer; without
    others to compare with, FACTOR times `least_s`.
    """
    begun = time.monotonic()
    pending = set(futures)
    half_s = least_s if len(futures) < COMPARABLE else None

    while pending:
        now_s = time.monotonic() - begun
        if half_s is None and 2 * len(pending) <= len(futures):
            half_s = now_s

        # While most are silent it is rather the machine: their own deadlines end them.
        left_s = None if half_s is None else max(half_s + least_s, FACTOR * half_s) - now_s
        if left_s is not None and left_s <= 0:
            return pending

        _, pending = wait(pending, left_s, return_when=FIRST_COMPLETED)

    return set()
