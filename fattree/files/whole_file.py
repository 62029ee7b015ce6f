"""A file is written as a whole, or stays as it was."""

import os
from contextlib import suppress
from pathlib import Path
from secrets import token_hex


def write_whole(path: Path, content: bytes) -> None:
    """Write a file; raises OSError with its name, and then leaves the file that was there before.

    A device or a pipe gets the bytes directly.
    """
    # Through a link, the file behind it is replaced.
    target = Path(os.path.realpath(path))
    try:
        if _is_replaceable(path, target):
            _replace(target, content)
        else:
            path.write_bytes(content)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None


def _is_replaceable(path: Path, target: Path) -> bool:
    # A new file in the place of an open file, as behind /dev/stdout, would miss later bytes.
    is_open = path.absolute().parts[1] in ("dev", "proc")
    is_file = target.is_file() or not target.exists()
    return is_file and not is_open and os.access(target.parent, os.W_OK)


def _replace(target: Path, content: bytes) -> None:
    part = target.with_name(f".ofan-{token_hex(8)}.part")
    try:
        fill(part, content)
        if target.exists():
            old = target.stat()
            part.chmod(old.st_mode & 0o7777)
            # Only root may give a file away.
            with suppress(PermissionError):
                os.chown(part, old.st_uid, old.st_gid)

        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def fill(path: Path, content: bytes) -> None:
    """Write a new file; raises OSError, also for a file that exists."""
    with path.open("xb") as file:
        file.write(content)
