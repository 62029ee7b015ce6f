"""Errors in a user's request.

Command lines print the message, one line, and exit with 2.

FabricError
    AddressError      a name or address that does not exist in this fat-tree
    TrafficError      a collective that cannot be built
    FailureError      failures that leave a flow without a path
    MatrixError       a connection matrix file that cannot be read, with its line
    ExperimentError   an experiment file that cannot be read, with its line and key

PhysicsError          a finished run that cannot have happened; command lines exit with 1
"""

import difflib
import re
from collections.abc import Iterable


def nearest(word: str, candidates: Iterable[str]) -> str:
    """Return the known word that was probably meant, as a question in brackets, or nothing."""
    # Names are in small letters; labels, as tables show them, and other tools' names may not be.
    slug = re.sub(r"[ -]", "_", word.lower())
    candidates = list(candidates)
    close = difflib.get_close_matches(slug, candidates, n=1)
    # The first word of a longer name, as in edges for edges_per_pod.
    close = close or [name for name in candidates if name.startswith(f"{slug}_")]
    return f" (did you mean {close[0]}?)" if close else ""


class PhysicsError(RuntimeError):
    """A finished run that cannot have happened: a fault of the program, whatever the input."""


class FabricError(ValueError):
    """Anything that `fattree` refuses; the message is one line, whatever it quotes."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.splitlines()))


class AddressError(FabricError):
    """A name or address that does not exist in this fat-tree."""


class TrafficError(FabricError):
    """A collective that cannot be built."""


class FailureError(FabricError):
    """Failures that leave a flow without a path."""


class MatrixError(FabricError):
    """A connection matrix file that cannot be read."""


class ExperimentError(FabricError):
    """An experiment file that cannot be read."""
