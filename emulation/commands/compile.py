"""`ofan p4 compile`, which also finds the programs that come with Ofan.

The compiler itself knows nothing of ours.
"""

from pathlib import Path

import click

from fattree.texts.shipped import FOLDERS, shipped
from ofan_p4.compiler import cli

compile_command = cli.compile_command


def _found(_context: click.Context, _parameter: click.Parameter, program: str) -> str:
    # What is nowhere is refused by the compiler, in p4c's words.
    return program if Path(program).exists() else str(shipped(program) or program)


def _folders(
    _context: click.Context, _parameter: click.Parameter, names: tuple[str, ...]
) -> tuple[str, ...]:
    """Return folders of includes, ours where `p4src` or one in it is named and is not here."""
    return tuple(map(_folder, names))


def _folder(name: str) -> str:
    first, *rest = Path(name).parts or ("",)
    inside = FOLDERS[first].joinpath(*rest) if first in FOLDERS and ".." not in rest else None
    return str(inside) if inside and inside.is_dir() and not Path(name).exists() else name


for each in compile_command.params:
    if each.name == "program":
        each.callback = _found
    if each.name == "include_dirs":
        each.callback = _folders
