"""How a P4Runtime call fails."""

from __future__ import annotations

from collections.abc import Sequence

from p4.v1 import p4runtime_pb2

from emulation.softswitch.errors import Code, EntryError, SoftswitchError


class StatusError(SoftswitchError):
    """A call that fails: a google.rpc code, one line, and for batches one `p4.v1.Error` each."""

    def __init__(
        self, code: Code, message: str, details: Sequence[p4runtime_pb2.Error] = ()
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = list(details)


def error_of(error: EntryError | None) -> p4runtime_pb2.Error:
    """Return the message for the outcome of one update; None is success."""
    if error is None:
        return p4runtime_pb2.Error(canonical_code=Code.OK)

    return p4runtime_pb2.Error(
        # 12.3: `space` says whose code the second one is.
        canonical_code=error.code,
        message=str(error),
        space="softswitch",
        code=error.code,
    )
