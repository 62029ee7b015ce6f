"""Accesses of a program beyond the end of a register or counter, which switches ignore.

Where a register is too small, the program loses state without an error; a line follows the run.
"""

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

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
            _tell(line, pipelines[0].source)


def strays(pipelines: Sequence[Pipeline]) -> Iterator[str]:
    """Yield lines about registers and counters that a switch's program has overrun."""
    program = pipelines[0].program
    registers, counters = program.registers, program.counters[:-1]
    kinds = (
        ("register", registers, 0, "is written", "such writes change nothing"),
        ("register", registers, program.stray_reads, "is read", "such reads keep their target"),
        ("counter", counters, program.stray_counts, "counts", "such counts are lost"),
    )
    for kind, arrays, first, verb, effect in kinds:
        for array in arrays:
            if any(int(pipeline.counters[-1][first + array.id][0]) for pipeline in pipelines):
                # p4c and our compiler note the file.
                file = Path(json.loads(pipelines[0].source).get("program", "the program")).name
                cells = f"{array.size:,} cells" if array.size != 1 else "one cell"
                name = short_name(array.name)
                yield f"{file}: {kind} {name} has {cells}, and {verb} beyond: {effect}"


# A program does so in each of its runs: once is enough, until it is edited.
@cache
def _tell(line: str, _source: bytes) -> None:
    logging.getLogger(__name__).warning(line)
