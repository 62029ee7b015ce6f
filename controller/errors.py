"""Errors between the controller and a switch.

ControllerError
    PlanError             a program with too little room for the fabric's entries
    SwitchError           one switch: its name comes first in the message
        UnreachableError      no answer
        NotPrimaryError       another controller is in charge of the switch
        CallError             a call refused as a whole, with its google.rpc code
            WriteError            a batch of which some updates were refused, each with its own code

A refused Write is a status of three levels: the call's code, a google.rpc.Status, and in its
details one p4.v1.Error per update of the batch, in the order of the batch (P4Runtime specification,
"Error reporting"). `WriteError.failures` has each refused update with its error.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from controller.entries import Change

OK = 0


class ControllerError(Exception):
    """Anything that the controller reports; the message is one line."""


class PlanError(ControllerError):
    """A program with too little room for the fabric's entries."""


class SwitchError(ControllerError):
    """Something is wrong with one switch."""

    def __init__(self, switch: str, message: str) -> None:
        super().__init__(f"{switch}: {message}")
        self.switch = switch


class UnreachableError(SwitchError):
    """The switch does not answer."""


class NotPrimaryError(SwitchError):
    """Another controller is in charge of the switch."""


class CallError(SwitchError):
    """A call that the switch refuses."""

    def __init__(self, switch: str, code: int, message: str) -> None:
        super().__init__(switch, f"{code_name(code)}: {message}")
        self.code = code


@dataclass(frozen=True, slots=True)
class Failure:
    """One refused update: its index in the batch, the update, and the switch's answer."""

    index: int
    change: Change
    code: int
    message: str

    def __str__(self) -> str:
        return f"update {self.index}, {self.change}: {code_name(self.code)}: {self.message}"


class WriteError(CallError):
    """A batch of which some updates were refused; the others are in force."""

    def __init__(self, switch: str, code: int, failures: Sequence[Failure], updates: int) -> None:
        super().__init__(
            switch, code, f"{len(failures)} of {updates} updates refused; first: {failures[0]}"
        )
        self.failures = tuple(failures)


@dataclass(slots=True)
class RpcFailure(Exception):
    """A failed call of a transport: its code, a line, and the errors of its updates."""

    code: int
    message: str
    details: Sequence[object] = ()


def code_name(code: int) -> str:
    """Return for example `NOT_FOUND` of a google.rpc code."""
    from google.rpc import code_pb2  # noqa: PLC0415  # protocol buffers

    return str(code_pb2.Code.Name(code)) if code in code_pb2.Code.values() else f"code {code}"
