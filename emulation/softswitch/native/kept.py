"""Machine code on disk, so that a program is compiled once.

Code that is loaded is code that runs: only a folder and a file that nobody else can write are
believed, and a file only if it is whole. `sim.jit` does the same for the simulator's kernels; the
switch imports nothing of the simulator.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

MAGIC = b"ofan native 1\n"

# What `preload` has read, for processes that may no longer read it themselves.
_preloaded: dict[str, bytes] = {}


def folder() -> Path | None:
    """Return the private folder, made if need be; None where there can be none."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    try:
        found = Path(base) / "ofan" / "native"
        found.mkdir(parents=True, exist_ok=True, mode=0o700)
        return found if _is_ours(found.lstat()) else None
    # No home, a file in the way, a disk that is full or read-only: programs are compiled each time.
    except (OSError, RuntimeError):
        return None


def _is_ours(found: os.stat_result) -> bool:
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def read(key: str) -> tuple[str, bytes] | None:
    """Return the interface and the code that have been kept, None where there are none."""
    content = _preloaded.get(key) or _content(key)
    if content is None:
        return None

    head = content[: len(MAGIC) + 32]
    body = content[len(head) :]
    if head != MAGIC + hashlib.sha256(body).digest():
        return None

    interface, _, code = body.partition(b"\n")
    return interface.decode(), code


def _content(key: str) -> bytes | None:
    place = folder()
    if place is None:
        return None

    try:
        with (place / key).open("rb") as file:
            return file.read() if _is_ours(os.fstat(file.fileno())) else None
    except OSError:
        return None


def preload() -> None:
    """Read all that is kept: whoever forks switches that become somebody else does it for them."""
    place = folder()
    for file in place.iterdir() if place is not None else ():
        content = _content(file.name)
        if content is not None:
            _preloaded[file.name] = content


def write(key: str, interface: str, code: bytes) -> None:
    """Keep the code of a program; where that does not work, it is compiled again next time."""
    place = folder()
    if place is None:
        return

    body = interface.encode() + b"\n" + code
    # Under another name first: whoever reads finds a whole file or none.
    with suppress(OSError):
        number, name = tempfile.mkstemp(dir=place)
        with os.fdopen(number, "wb") as file:
            file.write(MAGIC + hashlib.sha256(body).digest() + body)

        Path(name).replace(place / key)
