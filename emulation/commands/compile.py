"""`ofan p4 compile`, which also finds the programs that come with Ofan.

The compiler itself knows nothing of ours.
"""

from pathlib import Path

import click

from emulation.compiler import cli
from fattree.shipped import shipped

compile_command = cli.compile_command


def _found(_context: click.Context, _parameter: click.Parameter, program: str) -> str:
    # What is nowhere is refused by the compiler, in p4c's words.
    return program if Path(program).exists() else str(shipped(program) or program)


next(each for each in compile_command.params if each.name == "program").callback = _found
