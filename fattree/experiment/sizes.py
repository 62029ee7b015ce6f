"""Sizes as people write them: 65536, "64KiB", "1 MB"."""

import re
from collections.abc import Mapping
from typing import Any

from fattree.errors import ExperimentError

SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([kKMGT]?)(i?)B", re.ASCII)
PREFIXES = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}


def with_sizes(values: Any) -> Any:
    """Return a table with bytes in place of text, in keys that end in `_bytes`."""
    if not isinstance(values, Mapping):
        return values

    return {
        key: _bytes(value) if str(key).endswith("_bytes") else value
        for key, value in values.items()
    }


def size_in_bytes(text: str) -> int:
    """Return the bytes of "1MiB", "64KiB", "16 MB" or a plain number; raises ExperimentError."""
    size = int(text) if text.isascii() and text.isdigit() else _bytes(text)
    if not isinstance(size, int):
        raise ExperimentError(
            f"{text!r} is not a size: expected bytes, or a number and a unit, as in 1MiB or 64 KB"
        )

    return size


def _bytes(value: Any) -> Any:
    match = SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if not match:
        return value

    number, prefix, binary = match.groups()
    size = float(number) * (1024 if binary else 1000) ** PREFIXES[prefix]

    # Half a byte stays text, which pydantic then refuses with the key's name.
    return int(size) if size == int(size) else value
