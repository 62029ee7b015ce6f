"""A file of a report is replaced as a whole: a kill or a full disk leaves the old file."""

from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Write a file beside the old file and put it in its place; raises OSError with its name."""
    # The same name each time: the next report overwrites the part that a killed report has left.
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
