"""A file is written as a whole, or there is no new file."""

from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file; raises OSError with its name, and leaves no part of a new one then."""
    is_new = not path.exists()
    try:
        path.write_bytes(content)
    except OSError as error:
        # Half a file, as on a full disk, is of no use.
        if is_new:
            path.unlink(missing_ok=True)

        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
