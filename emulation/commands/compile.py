"""`ofan p4 compile`, which also finds Ofan's programs and their includes.

The compiler itself does not know Ofan's files.
"""

from pathlib import Path

import click

from emulation.commands.includes import find_ours
from fattree.texts.shipped import shipped
from ofan_p4.compiler import cli

compile_command = cli.compile_command


def _found(_context: click.Context, _parameter: click.Parameter, program: str) -> str:
    # The compiler refuses a missing file, in p4c's words.
    return program if Path(program).exists() else str(shipped(program) or program)


find_ours(compile_command)
for each in compile_command.params:
    if each.name == "program":
        each.callback = _found
