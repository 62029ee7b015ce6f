"""Reading a user's file: any error of the system becomes one line."""

import errno
import os
import stat
from pathlib import Path

from fattree.errors import FabricError

# A connection matrix of an all-to-all of 1,024 hosts has 40 MB. A regular file of a system may have
# no end, too.
MOST_BYTES = 256 << 20
NOT_REGULAR = "not a regular file"


def read_text(path: str | Path, refusal: type[FabricError], limit: int = MOST_BYTES) -> str:
    """Return the UTF-8 text of a file; raises `refusal` if it cannot be read or is too large."""
    try:
        # Windows begins texts with a byte order mark, which has no meaning.
        return read_bytes(path, refusal, limit).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise refusal(f"{path}: cannot be read: not UTF-8 text") from None


def line_of_zero_byte(text: str) -> int | None:
    """Return the number of the first line with a zero byte, None without any."""
    before, zero, _ = text.partition("\0")
    return before.count("\n") + 1 if zero else None


def read_bytes(path: str | Path, refusal: type[FabricError], limit: int = MOST_BYTES) -> bytes:
    """Return the content of a file; raises `refusal` if it cannot be read or is too large."""
    try:
        with open(path, "rb", opener=_regular) as file:
            content = file.read(limit + 1)
    # ValueError: a path with a zero byte in it.
    except (OSError, ValueError) as error:
        raise refusal(
            f"{str(path)!r}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None

    if len(content) > limit:
        raise refusal(f"{path}: has more than {limit >> 20} MiB")

    return content


def _regular(path: str, flags: int) -> int:
    """Open a regular file; raises OSError. Reading a pipe could take forever."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor

    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))

    raise OSError(errno.EINVAL, NOT_REGULAR)
