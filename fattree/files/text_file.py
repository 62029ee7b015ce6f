"""Reading a user's file: whatever the system says against it becomes one line."""

from pathlib import Path

from fattree.errors import FabricError

# A connection matrix of an all-to-all of 1,024 hosts has 40 MB. /dev/zero has no end.
MOST_BYTES = 256 << 20


def read_text(path: str | Path, refusal: type[FabricError]) -> str:
    """Return the UTF-8 text of a file; raises `refusal` if it cannot be read or is too large."""
    try:
        # Windows begins texts with a byte order mark, which says nothing.
        return read_bytes(path, refusal).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise refusal(f"{path}: cannot be read: not UTF-8 text") from None


def line_of_zero_byte(text: str) -> int | None:
    """Return the number of the first line with a zero byte, None without any."""
    before, zero, _ = text.partition("\0")
    return before.count("\n") + 1 if zero else None


def read_bytes(path: str | Path, refusal: type[FabricError]) -> bytes:
    """Return the content of a file; raises `refusal` if it cannot be read or is too large."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    # ValueError: a path with a zero byte in it.
    except (OSError, ValueError) as error:
        raise refusal(
            f"{str(path)!r}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None

    if len(content) > MOST_BYTES:
        raise refusal(f"{path}: has more than {MOST_BYTES >> 20} MiB")

    return content
