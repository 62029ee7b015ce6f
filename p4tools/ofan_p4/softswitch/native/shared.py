"""The common state of the translations of ingress and egress."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from llvmlite import ir

from ofan_p4.softswitch.codegen import names
from ofan_p4.softswitch.codegen.assembly import Assembly
from ofan_p4.softswitch.codegen.program import Program
from ofan_p4.softswitch.codegen.variables import POSITION
from ofan_p4.softswitch.native.context import Places, places
from ofan_p4.softswitch.native.helpers import Helpers
from ofan_p4.softswitch.native.variables import StateLayout

INGRESS = "ingress"
EGRESS = "egress"

# Bits of a packet's requests, in the result of both functions.
CLONED, DIGESTED, RESUBMITTED, RECIRCULATED = 1, 2, 4, 8
REQUEST_BITS = {
    names.CLONE: CLONED,
    names.DIGEST: DIGESTED,
    names.RESUBMIT: RESUBMITTED,
    names.RECIRCULATE: RECIRCULATED,
}
# The words of a packet's requests: of each request two numbers (clone session or list, and list),
# then the length of the frame in egress, then every request's values.
REQUEST_WORDS = {name: 2 * i for i, name in enumerate(REQUEST_BITS)}
FRAME_WORD = 8
VALUES_WORD = 9
# A packet that asks for something in egress ends with this less its request bits; -1 is a drop.
ASKED = -2
DROPPED = -1

# The words that a returning packet brings: instance type, field list; the values follow.
RESUME_INSTANCE, RESUME_LIST, RESUME_VALUES = range(3)

# The codes of `struct`: numbers of 1, 2, 4 and 8 bytes, bytes, and padding.
_SIZES = {"B": 1, "H": 2, "I": 4, "Q": 8}
_FORMAT = re.compile(r"(\d*)([BHIQsx])")


@dataclass(frozen=True, slots=True)
class Place:
    """Bytes of the frame from `offset` on (or ZEROS, NOTHING), `size` of them."""

    offset: Any
    size: Any


# The place of a value in the request words: its first word, its bits, whether it is signed.
ValuePlace = tuple[int, int, bool]


@dataclass(slots=True)
class RequestLayout:
    """The places of the values of each list (request, number) in the request words."""

    places: dict[tuple[str, int], tuple[ValuePlace, ...]] = field(default_factory=dict)
    size: int = VALUES_WORD


@dataclass(frozen=True, slots=True)
class Interface:
    """The interface of `ingress` and `egress` for their callers.

    `logs` are texts and numbers of values by the number of the message.
    """

    state_bytes: int
    requests: RequestLayout
    logs: Mapping[int, tuple[str, int]]

    def as_json(self) -> str:
        """Return the interface as text, to be kept beside the code."""
        lists = [[*key, *places] for key, places in self.requests.places.items()]
        logs = [[number, *message] for number, message in self.logs.items()]
        return json.dumps([self.state_bytes, self.requests.size, lists, logs])

    @classmethod
    def from_json(cls, text: str | bytes) -> Interface:
        """Return the interface that `as_json` has written."""
        size, request_words, lists, logs = json.loads(text)
        places = {(name, number): tuple(map(tuple, rest)) for name, number, *rest in lists}
        return cls(
            size,
            RequestLayout(places, request_words),
            {number: (message, count) for number, message, count in logs},
        )


@dataclass(frozen=True, slots=True)
class Translation:
    """A module of LLVM IR with `ingress` and `egress`, and their interface."""

    text: str
    interface: Interface


@dataclass(slots=True)
class Shared:
    """The common state of both translations."""

    program: Program
    places: Places
    state: StateLayout
    module: ir.Module
    helpers: Helpers
    requests: RequestLayout = field(default_factory=RequestLayout)
    logs: dict[int, tuple[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, program: Program, assembly: Assembly) -> Shared:
        """Return the common state, before either function is translated."""
        module = ir.Module("program")
        layout = StateLayout.of((POSITION, *assembly.state))
        return cls(program, places(program), layout, module, Helpers(module))


def struct_parts(format_: str) -> list[tuple[str, int, int]]:
    """Return (code, size, offset) of the parts of a struct."""
    parts = []
    offset = 0
    for count, code in _FORMAT.findall(format_):
        if code in "sx":
            size = int(count or 1)
            if code == "s":
                parts.append((code, size, offset))

            offset += size
            continue

        for _ in range(int(count or 1)):
            parts.append((code, _SIZES[code], offset))
            offset += _SIZES[code]

    return parts
