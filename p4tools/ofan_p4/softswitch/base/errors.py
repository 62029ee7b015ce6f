"""The errors of the switch.

SoftswitchError
├── PipelineError   a BMv2 JSON (or its P4Info) that cannot be run
├── EntryError      one update that a table, profile or replication engine refuses
└── StatusError     a P4Runtime call that fails as a whole (p4rt/status.py)

The last two carry a google.rpc code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum


class Code(IntEnum):
    """The google.rpc codes that a P4Runtime server uses."""

    OK = 0
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13


class SoftswitchError(Exception):
    """Anything that the switch refuses; the message is one line."""


class PipelineError(SoftswitchError):
    """The pipeline description cannot be run."""


@contextmanager
def corruption_is_reported() -> Iterator[None]:
    """Turn Python's errors about JSON of the wrong shape into one PipelineError."""
    try:
        yield
    except KeyError as error:
        raise PipelineError(f"corrupt BMv2 JSON: missing or unknown {error}") from None
    except (TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        raise PipelineError(f"corrupt BMv2 JSON: {error}") from None
    except (RecursionError, MemoryError, SyntaxError):
        raise PipelineError("corrupt BMv2 JSON: nested or sized beyond all measure") from None


class EntryError(SoftswitchError):
    """The control plane asked for something that the pipeline does not allow."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
