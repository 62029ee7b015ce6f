"""Lines about accesses of a program beyond the end of an array, which switches ignore."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from ofan_p4.softswitch.control.pipeline import Pipeline
from ofan_p4.softswitch.control.strays import strays


@contextmanager
def strays_told(pipelines: Sequence[Pipeline]) -> Iterator[None]:
    """Log a line for each array that the switches' program overruns meanwhile."""
    try:
        yield
    # A run that fails may have failed for them.
    finally:
        for line in strays(pipelines):
            tell(line, pipelines[0].source)


# A program does so in each of its runs: once is enough, until it is edited.
@cache
def tell(line: str, _program: bytes = b"") -> None:
    """Log a line, unless it has been logged for this program."""
    logging.getLogger(__name__).warning(line)
