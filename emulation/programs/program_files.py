"""The files of a user's program: their digest for a run's key, and their way to other processes.

A program's files are those that the preprocessor opens, with the macros of the run: a pattern that
looks for includes misses a macro's, and reads files that `#if 0` leaves out.
"""

import atexit
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from emulation.programs.switch_program import INCLUDE_FOLDERS, defines_for, program_size
from fattree.experiment.model import Scenario
from ofan_p4.bounded import TooLargeError, read_bytes
from sim.sweeps.own_folder import own_folder
from sim.sweeps.store import digest_programs_with

# Name and content, the program's own first.
Files: TypeAlias = tuple[tuple[str, bytes], ...]
Macros: TypeAlias = tuple[tuple[str, str], ...]
# Files that determine a program, with the hash of their content; None: there is no such file.
Hashes: TypeAlias = dict[Path, str | None]
# Where files have been put, for this process's life: a compiled program is known by its path.
_folders = ExitStack()
atexit.register(_folders.close)
# The hashes of programs that have been preprocessed, which takes a tenth of a second.
_known: dict[tuple[Path, Macros], Hashes] = {}


def program_digest(scenario: Scenario) -> str:
    """Return the hash of all files that a scenario's program consists of.

    A program that cannot be read or has an error gets a hash, too: its run reports the error.
    """
    macros = defines_for(program_size(scenario), macros=scenario.defines)
    return content_digest(Path(str(scenario.program)), macros)


def content_digest(program: Path, macros: dict[str, str]) -> str:
    """Return the hash of all files that a program consists of with some macros."""
    path = program.absolute()
    key = (path, tuple(sorted(macros.items())))
    earlier = _known.get(key, {})
    hashes = {file: _hash(file) for file in earlier}
    # As long as no file that the preprocessor looked at differs, it would look at the same again.
    if not earlier or hashes != earlier:
        hashes = _known[key] = {file: _hash(file) for file in _deciding(path, macros)}

    # Without folders, the same program elsewhere has the same key.
    text = "\n".join(file_hash for file_hash in hashes.values() if file_hash)
    return hashlib.sha256(text.encode()).hexdigest()


digest_programs_with(program_digest)


def _deciding(path: Path, macros: dict[str, str]) -> Iterator[Path]:
    """Yield the files that determine a program, and paths where a file would determine it."""
    yield path
    if path.suffix != ".p4":
        yield path.with_suffix(".txtpb")
        return

    from ofan_p4.compiler.preprocessor import MOST_BYTES, probed_files  # noqa: PLC0415  # as above

    text = _content(path) or b""
    # A longer file is no program.
    if len(text) <= MOST_BYTES:
        arguments = (text.decode(errors="replace"), str(path), INCLUDE_FOLDERS, macros)
        yield from map(Path, probed_files(*arguments))


def _hash(path: Path) -> str | None:
    content = _content(path)
    return None if content is None else hashlib.sha256(content).hexdigest()


def _content(path: Path) -> bytes | None:
    """Return the content of a file, None where there is none, or a device or pipe."""
    try:
        return read_bytes(path) if path.is_file() else None
    except (OSError, TooLargeError):
        return None


def packed(path: Path, included: Iterable[str]) -> Files:
    """Return a program's files: its own, and the included ones of its folder; raises OSError."""
    return tuple((name, (path.parent / name).read_bytes()) for name in files_of(path, included))


@lru_cache
def unpacked(files: Files) -> Path:
    """Return the path of a program after writing its files, which come from elsewhere."""
    folder = _folders.enter_context(own_folder("ofan-program-"))
    for name, content in files:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    return folder / files[0][0]


def files_of(path: Path, included: Iterable[str]) -> list[str]:
    """Return the names of a program's files in its folder: its own, then the included ones.

    BMv2 JSON has its P4Info beside it.
    """
    names = [path.name] if path.suffix == ".p4" else [path.name, path.with_suffix(".txtpb").name]
    folder = path.parent.resolve()
    # Files elsewhere, such as our own includes, are not the program's.
    below = [file.resolve() for file in map(Path, included)]
    names += [str(file.relative_to(folder)) for file in below if file.is_relative_to(folder)]
    return list(dict.fromkeys(names))
