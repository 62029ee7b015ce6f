"""Where `ofan p4` looks for includes: in the folders of `-I`, then in ours, as `ofan emulate` does.

The P4 tools themselves know nothing of ours.
"""

from pathlib import Path

import click

import p4src
from fattree.texts.shipped import FOLDERS


def find_ours(command: click.Command) -> None:
    """Let the option `-I` of a command stand for our folders as well."""
    for each in command.params:
        if each.name == "include_dirs":
            each.callback = _folders


def _folders(
    _context: click.Context, _parameter: click.Parameter, names: tuple[str, ...]
) -> tuple[str, ...]:
    """Return folders of includes, ours where `p4src` or one in it is named and is not here."""
    return *map(_folder, names), str(p4src.INCLUDE), str(p4src.FOLDER)


def _folder(name: str) -> str:
    first, *rest = Path(name).parts or ("",)
    inside = FOLDERS[first].joinpath(*rest) if first in FOLDERS and ".." not in rest else None
    return str(inside) if inside and inside.is_dir() and not Path(name).exists() else name
