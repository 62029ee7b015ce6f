"""What the translations of a program's two functions have in common."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from llvmlite import ir

from emulation.softswitch import hashes
from emulation.softswitch.codegen import names
from emulation.softswitch.codegen.assembly import Assembly
from emulation.softswitch.codegen.program import Program
from emulation.softswitch.native.context import Places, places
from emulation.softswitch.native.helpers import Helpers
from emulation.softswitch.native.variables import StateLayout, kind_of

INGRESS = "ingress"
EGRESS = "egress"

# Bits of what a packet asks for, in the result of both functions.
CLONED, DIGESTED, RESUBMITTED, RECIRCULATED = 1, 2, 4, 8
REQUEST_BITS = {
    names.CLONE: CLONED,
    names.DIGEST: DIGESTED,
    names.RESUBMIT: RESUBMITTED,
    names.RECIRCULATE: RECIRCULATED,
}
# The words in which a packet says what it asks for: of each request two numbers (clone session or
# list, and list), then the length of the frame in egress, then every request's values.
REQUEST_WORDS = {name: 2 * i for i, name in enumerate(REQUEST_BITS)}
FRAME_WORD = 8
VALUES_WORD = 9
# A packet that asks for something in egress ends with this less its request bits; -1 is a drop.
ASKED = -2
DROPPED = -1

# The words of what comes round again: instance type, field list; its values follow.
RESUME_INSTANCE, RESUME_LIST, RESUME_VALUES = range(3)

_SIZES = {"B": 1, "H": 2, "I": 4, "Q": 8}
_FORMAT = re.compile(r"(\d*)([BHIQsx])")


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes of the frame from `offset` on (or ZEROS, NOTHING), `size` of them."""

    offset: Any
    size: Any


# Where a value is in the request words: its first word, its bits, whether it is signed.
Place = tuple[int, int, bool]


@dataclass(slots=True)
class RequestLayout:
    """Where the values of each list (request, number) are in the request words."""

    places: dict[tuple[str, int], tuple[Place, ...]] = field(default_factory=dict)
    size: int = VALUES_WORD


@dataclass(frozen=True, slots=True)
class Interface:
    """What the callers of `ingress` and `egress` must know of them.

    `logs` are texts and numbers of values by the number of the message.
    """

    state_bytes: int
    requests: RequestLayout
    logs: Mapping[int, tuple[str, int]]

    def as_json(self) -> str:
        """Return it as text."""
        lists = [[*key, *places] for key, places in self.requests.places.items()]
        logs = [[number, *message] for number, message in self.logs.items()]
        return json.dumps([self.state_bytes, self.requests.size, lists, logs])

    @classmethod
    def from_json(cls, text: str | bytes) -> Interface:
        """Return what `as_json` has written."""
        size, words, lists, logs = json.loads(text)
        places = {(name, number): tuple(map(tuple, rest)) for name, number, *rest in lists}
        return cls(
            size,
            RequestLayout(places, words),
            {number: (said, count) for number, said, count in logs},
        )


@dataclass(frozen=True, slots=True)
class Translation:
    """A module of LLVM IR with `ingress` and `egress`, and what their callers must know."""

    text: str
    interface: Interface


@dataclass(slots=True)
class Shared:
    """What the translations of both functions have in common."""

    program: Program
    constants: Mapping[str, Any]
    places: Places
    sizes: dict[str, int]
    state: StateLayout
    requests: RequestLayout
    module: ir.Module
    helpers: Helpers
    algorithms: dict[int, str]
    logs: dict[int, tuple[str, int]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, program: Program, assembly: Assembly, functions: Mapping[str, ast.FunctionDef]
    ) -> Shared:
        sizes = _opaque_sizes(functions.values(), assembly.constants)
        state = _state_names(functions[EGRESS])
        module = ir.Module("program")
        return cls(
            program,
            assembly.constants,
            places(program),
            sizes,
            StateLayout.of((name, kind_of(program, name, sizes)) for name in state),
            RequestLayout(),
            module,
            Helpers(module),
            {
                id(function): "csum16" if function is hashes.csum16 else name
                for name, (function, _) in hashes.ALGORITHMS.items()
                if not name.endswith("_custom")
            },
        )


def state_order(shared: Shared) -> list[str]:
    """Return the variables that travel, in the order of the text."""
    # `StateLayout` sorts by size; the text has its own order: position, then names in order.
    rest = sorted(name for name in shared.state.places if name != names.POSITION)
    return [names.POSITION, *rest]


def _state_names(egress: ast.FunctionDef) -> list[str]:
    """Return the variables that travel: what egress unpacks first, but for the frame itself."""
    first = egress.body[0]
    assert isinstance(first, ast.Assign) and isinstance(first.targets[0], ast.Tuple)
    found = [name.id for name in first.targets[0].elts if isinstance(name, ast.Name)]
    return found[1:]


def _opaque_sizes(
    functions: Iterable[ast.FunctionDef], constants: Mapping[str, Any]
) -> dict[str, int]:
    """Return the size of every variable that holds bytes which `struct` has cut out."""
    sizes: dict[str, int] = {}
    for function in functions:
        for node in ast.walk(function):
            if not isinstance(node, ast.Assign):
                continue

            target = node.targets[0]
            sizes.update(_zeros(target, node.value))
            if not isinstance(node.value, ast.Call):
                continue

            called = node.value.func
            if isinstance(target, ast.Tuple) and isinstance(called, ast.Name):
                parts = struct_parts(constants.get(called.id))
                for name, (code, size, _) in zip(target.elts, parts, strict=False):
                    if code == "s" and isinstance(name, ast.Name):
                        sizes[name.id] = size

    return sizes


def _zeros(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, int]]:
    """Yield the variables that are assigned zero bytes, with how many these are."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, other in zip(target.elts, value.elts, strict=True):
            yield from _zeros(one, other)

    match target, value:
        case ast.Name(id=name), ast.Constant(value=bytes(content)) if content:
            yield name, len(content)


def struct_parts(method: Any) -> list[tuple[str, int, int]]:
    """Return (code, size, offset) of the parts of the struct that a bound method belongs to."""
    struct_ = getattr(method, "__self__", None)
    if struct_ is None:
        return []

    parts = []
    offset = 0
    for count, code in _FORMAT.findall(struct_.format[1:]):
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
