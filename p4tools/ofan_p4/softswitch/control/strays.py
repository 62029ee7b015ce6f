"""Accesses of a program beyond the end of a register, counter or meter, which switches ignore.

Where an array is too small, the program loses state without an error: these lines are the only
sign. The code counts them in a counter of its own (`codegen.program.STRAYS`).
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from ofan_p4.softswitch.control.pipeline import Pipeline


def strays(pipelines: Sequence[Pipeline]) -> Iterator[str]:
    """Yield a line for each array of a program that any of its switches has overrun."""
    program = pipelines[0].program
    registers, counters, meters = program.registers, program.counters[:-1], program.meters
    kinds = (
        ("register", registers, 0, "is written", "such writes change nothing"),
        ("register", registers, program.stray_reads, "is read", "such reads change nothing"),
        ("counter", counters, program.stray_counts, "counts", "such counts are lost"),
        ("meter", meters, program.stray_colors, "is asked", "such packets get no colour"),
    )
    for kind, arrays, first, verb, effect in kinds:
        for array in arrays:
            if any(int(pipeline.counters[-1][first + array.id][0]) for pipeline in pipelines):
                # p4c and our compiler note the file.
                file = Path(json.loads(pipelines[0].source).get("program", "the program")).name
                name = ".".join(array.name.split(".")[-2:])
                cells = f"{array.size:,} cells" if array.size != 1 else "one cell"
                yield f"{file}: {kind} {name} has {cells}, and {verb} beyond: {effect}"
