"""Errors of P4Runtime calls."""

from __future__ import annotations

from collections.abc import Sequence

from google.rpc import status_pb2
from p4.v1 import p4runtime_pb2

from ofan_p4.softswitch.base.errors import Code, EntryError, SoftswitchError


class StatusError(SoftswitchError):
    """A call that fails: a google.rpc code, one line, and for batches one `p4.v1.Error` each."""

    def __init__(
        self, code: Code, message: str, details: Sequence[p4runtime_pb2.Error] = ()
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = list(details)


# gRPC's clients refuse more than 8 KB of metadata at random and more than 16 KB always.
MAX_DETAILS = 6000
# The end of a detail's type; the host before it means nothing.
SHORT_TYPE_URL = "/p4.v1.Error"


def status_bytes(error: StatusError) -> bytes:
    """Return a google.rpc.Status that fits into the metadata of a call.

    Of a long batch the details lose their messages first, and then only as many of the first
    updates as have room have details; the status's own message mentions it.
    """
    whole = _status(error, error.message, error.details, "type.googleapis.com/p4.v1.Error")
    if len(whole) <= MAX_DETAILS:
        return whole

    codes = [p4runtime_pb2.Error(canonical_code=item.canonical_code) for item in error.details]
    message = error.message[:MAX_TEXT]
    for count in (len(codes), MAX_DETAILS // 20):
        shown = codes[:count]
        more = "" if count == len(codes) else f" (the details are of the first {count} updates)"
        made = _status(error, message + more, shown, SHORT_TYPE_URL)
        if len(made) <= MAX_DETAILS + MAX_TEXT:
            break

    return made


MAX_TEXT = 500


def _status(
    error: StatusError, message: str, details: Sequence[p4runtime_pb2.Error], type_url: str
) -> bytes:
    status = status_pb2.Status(code=error.code, message=message)
    for detail in details:
        status.details.add(type_url=type_url, value=detail.SerializeToString())

    return bytes(status.SerializeToString())


def error_of(error: EntryError | None) -> p4runtime_pb2.Error:
    """Return the message for the outcome of one update; None is success."""
    if error is None:
        return p4runtime_pb2.Error(canonical_code=Code.OK)

    return p4runtime_pb2.Error(
        # 12.3: `space` names the owner of the second code.
        canonical_code=error.code,
        message=str(error),
        space="softswitch",
        code=error.code,
    )
