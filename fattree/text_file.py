"""Reading the text of a user's file: whatever the system says against it becomes one line."""

from pathlib import Path

from fattree.errors import FabricError


def read_text(path: str | Path, refusal: type[FabricError]) -> str:
    """Return the UTF-8 text of a file; raises `refusal` where it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise refusal(f"{path}: cannot be read: not UTF-8 text") from None
    # ValueError: a path with a zero byte in it.
    except (OSError, ValueError) as error:
        raise refusal(
            f"{str(path)!r}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
