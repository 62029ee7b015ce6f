"""Writes of a program beyond the end of a register, which switches ignore.

Where a register is too small, the program loses state without an error; a line follows the run.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from ofan_p4.softswitch.control.pipeline import Pipeline


@contextmanager
def stray_writes_told(pipelines: Sequence[Pipeline]) -> Iterator[None]:
    """Log a line for each register that the switches' program overruns meanwhile."""
    try:
        yield
    # A run that fails may have failed for them.
    finally:
        for line in stray_writes(pipelines):
            _tell(line)


def stray_writes(pipelines: Sequence[Pipeline]) -> Iterator[str]:
    """Yield lines about registers that a switch's program has overrun."""
    # Our counter is behind those of the program: a cell for each register.
    for register in pipelines[0].program.registers:
        if any(int(pipeline.counters[-1][register.id][0]) for pipeline in pipelines):
            yield (
                f"register {register.name} has {register.size:,} cells, and the program writes"
                " beyond them: switches ignore such writes"
            )


# A program does so in each of its runs: once is enough.
@cache
def _tell(line: str) -> None:
    logging.getLogger(__name__).warning(line)
