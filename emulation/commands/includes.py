"""The include folders of `ofan p4`: those of `-I`, then Ofan's, as in `ofan emulate`.

The P4 tools themselves do not know Ofan's folders.
"""

from pathlib import Path

import click

import p4src
from fattree.texts.shipped import FOLDERS


def find_ours(command: click.Command) -> None:
    """Add Ofan's folders to the option `-I` of a command."""
    for parameter in command.params:
        if parameter.name == "include_dirs":
            parameter.callback = _folders


def _folders(
    _context: click.Context, _parameter: click.Parameter, names: tuple[str, ...]
) -> tuple[str, ...]:
    """Return include folders; a missing `p4src`, or a folder in it, stands for Ofan's."""
    return *map(_folder, names), str(p4src.INCLUDE), str(p4src.FOLDER)


def _folder(name: str) -> str:
    first, *rest = Path(name).parts or ("",)
    inside = FOLDERS[first].joinpath(*rest) if first in FOLDERS and ".." not in rest else None
    return str(inside) if inside and inside.is_dir() and not Path(name).exists() else name
