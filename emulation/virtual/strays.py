"""Accesses of a program beyond the end of a register or counter, which switches ignore.

Where a register is too small, the program loses state without an error; a line follows the run.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from emulation.outcomes.switch_state import short_name
from ofan_p4.softswitch.control.pipeline import Pipeline


@contextmanager
def strays_told(pipelines: Sequence[Pipeline]) -> Iterator[None]:
    """Log a line for each register and counter that the switches' program overruns meanwhile."""
    try:
        yield
    # A run that fails may have failed for them.
    finally:
        for line in strays(pipelines):
            _tell(line)


def strays(pipelines: Sequence[Pipeline]) -> Iterator[str]:
    """Yield lines about registers and counters that a switch's program has overrun."""
    program = pipelines[0].program
    registers, counters = program.registers, program.counters[:-1]
    kinds = (
        ("register", registers, 0, "writes", "such writes change nothing"),
        ("register", registers, program.stray_reads, "reads", "such reads keep their target"),
        ("counter", counters, program.stray_counts, "counts", "such counts are lost"),
    )
    for kind, arrays, first, verb, effect in kinds:
        for array in arrays:
            if any(int(pipeline.counters[-1][first + array.id][0]) for pipeline in pipelines):
                cells = f"{kind} {short_name(array.name)} has {array.size:,} cells"
                yield f"{cells}, and the program {verb} beyond them: {effect}"


# A program does so in each of its runs: once is enough.
@cache
def _tell(line: str) -> None:
    logging.getLogger(__name__).warning(line)
