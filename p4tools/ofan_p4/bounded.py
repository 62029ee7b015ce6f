"""Bounded reads of files that a user names: /dev/zero is a file, too.

A capture's blocks state their own lengths, which may be wrong: a reader that allocates them may
need too much memory.
"""

import errno
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

MEBIBYTE = 1 << 20
# Of a program in JSON, a script, a message.
MOST_BYTES = 256 * MEBIBYTE
# Of one block of a capture: jumbo frames are a thousandth of it.
MOST_BLOCK_BYTES = 16 * MEBIBYTE


class TooLargeError(ValueError):
    """More than makes sense; one line with the figures."""


def read_bytes(path: Path, limit: int = MOST_BYTES) -> bytes:
    """Return the content of a file; raises OSError, and TooLargeError for more than `most`."""
    with open(path, "rb", opener=_regular) as file:
        content = file.read(limit + 1)

    if len(content) > limit:
        raise TooLargeError(f"more than {limit // MEBIBYTE} MiB, which no such file of ours has")

    return content


def _regular(path: str, flags: int) -> int:
    """Open a regular file; raises OSError. A pipe could be waited for without an end."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor

    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))

    raise OSError(errno.EINVAL, "not a regular file")


class BoundedFile:
    """A file from which no more than a block's bytes can be asked at once.

    Raises TooLargeError.
    """

    def __init__(self, file: BinaryIO, limit: int = MOST_BLOCK_BYTES) -> None:
        self._file = file
        self._most = limit

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        if not 0 <= size <= self._most:
            raise TooLargeError(
                f"a block of {size:,} bytes, more than {self._most // MEBIBYTE} MiB"
            )

        return self._file.read(size)

    def __getattr__(self, name: str) -> Any:
        """Be the file in all else."""
        return getattr(self._file, name)
