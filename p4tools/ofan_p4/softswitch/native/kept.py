"""Machine code of programs on disk, so that a program is compiled once (`ofan_cache`)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import ofan_cache

# The contents that `preload` has read, for processes that may not open the folder any more.
_preloaded: dict[str, bytes] = {}


def folder() -> Path | None:
    """Return the private folder, made if need be; None where there can be none."""
    return ofan_cache.place("native").folder


def read(key: str) -> tuple[str, bytes] | None:
    """Return the interface and the code that have been kept, None where there are none."""
    content = _preloaded.get(key) or _content(key)
    if content is None:
        return None

    # The first line is the interface, the rest the object file.
    interface, _, code = content.partition(b"\n")
    return interface.decode(), code


def _content(key: str) -> bytes | None:
    directory = folder()
    return None if directory is None else ofan_cache.read(directory, key)


def preload(keys: Iterable[str]) -> None:
    """Read the code of some programs in advance, for switches that are forked as another user.

    Not all of it: thousands of programs may have been compiled here.
    """
    for key in keys:
        if (content := _content(key)) is not None:
            _preloaded[key] = content


def write(key: str, interface: str, code: bytes) -> None:
    """Keep the code of a program; where that does not work, it is compiled again next time."""
    if (directory := folder()) is not None:
        ofan_cache.write(directory, key, interface.encode() + b"\n" + code)
