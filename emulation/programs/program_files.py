"""The files of a user's program, and how they travel to processes that do not see them."""

import atexit
import re
from collections.abc import Iterator
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path

from sim.sweeps.own_folder import own_folder

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
# Name and content, the program's own first.
Files = tuple[tuple[str, bytes], ...]
# Where files have been put, for this process's life: what is compiled is known by its path.
_folders = ExitStack()
atexit.register(_folders.close)


def packed(path: Path) -> Files:
    """Return a program's files, what it includes from its folder among them; raises OSError."""
    return tuple(
        (name, (path.parent / name).read_bytes()) for name in dict.fromkeys(files_of(path))
    )


@lru_cache
def unpacked(files: Files) -> Path:
    """Return the path of a program whose files have come from elsewhere."""
    folder = _folders.enter_context(own_folder("ofan-program-"))
    for name, content in files:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    return folder / files[0][0]


def files_of(path: Path) -> Iterator[str]:
    """Yield the files of a program, relative to its folder.

    BMv2 JSON has its P4Info beside it, P4 what it includes from its folder.
    """
    found = [path.name] if path.suffix == ".p4" else [path.name, path.with_suffix(".txtpb").name]
    # The list grows while it is gone through: what is included may include others.
    for name in found:
        yield name
        if path.suffix == ".p4":
            included = INCLUDE.findall((path.parent / name).read_text(encoding="utf-8"))
            found += [
                each for each in included if each not in found and _is_below(path.parent, each)
            ]


def _is_below(folder: Path, name: str) -> bool:
    # What lies elsewhere, such as our own includes, is not the program's.
    file = folder / name
    return file.is_file() and file.resolve().is_relative_to(folder.resolve())
