"""What generated code's variables are in machine code, and where the state block keeps them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from llvmlite import ir

from emulation.softswitch.codegen import names
from emulation.softswitch.codegen.program import Program
from emulation.softswitch.native.values import I32, UnsupportedError, container, stored

# Bytes are places in the frame that came in. These two stand for as many zeros, and for no bytes.
ZEROS = -1
NOTHING = -2

# What a state block begins with: egress_spec, multicast group, priority, growth, 32 bits each.
OUTCOME_BYTES = 16

_VALID = re.compile(r"v\d+")
_NEXT = re.compile(r"n[su]\d+")
_RAW = re.compile(r"h\d+")
_OPAQUE = re.compile(r"o\d+_\d+")

# Variables that are neither fields nor bytes: their bits, and whether they may be negative.
_PLAIN = {
    names.SIZE: (32, False),
    names.GROWTH: (32, True),
    names.POSITION: (32, False),
    names.PARSER_ERROR: (32, False),
    names.CUTOFF: (32, False),
    names.EXITED: (1, False),
    names.HIT: (1, False),
    names.BLOCK: (32, False),
    names.ACTION: (32, True),
}


@dataclass(frozen=True, slots=True)
class NumberKind:
    """A number of so many bits."""

    bits: int
    is_signed: bool = False

    @property
    def type(self) -> ir.IntType:
        """The container that it is computed in."""
        return container(self.bits)

    @property
    def memory(self) -> tuple[ir.IntType, ...]:
        """What it is kept as."""
        return (stored(self.bits),)


@dataclass(frozen=True, slots=True)
class BytesKind:
    """Bytes of the frame: an offset, and a length where that is not always the same."""

    size: int | None

    @property
    def memory(self) -> tuple[ir.IntType, ...]:
        """What they are kept as."""
        return (I32,) if self.size is not None else (I32, I32)


Kind = NumberKind | BytesKind


def kind_of(program: Program, name: str, sizes: dict[str, int]) -> Kind:
    """Return what a variable is; `sizes` are those of opaque chunks."""
    if name in _PLAIN:
        return NumberKind(*_PLAIN[name])
    if _VALID.fullmatch(name):
        return NumberKind(1)
    if _NEXT.fullmatch(name):
        return NumberKind(32)
    if _RAW.fullmatch(name):
        return BytesKind(program.headers[int(name[1:])].bytes)
    if _OPAQUE.fullmatch(name):
        if name not in sizes:
            raise UnsupportedError(f"bytes of unknown size in {name}")

        return BytesKind(sizes[name])

    header = names.header_of(name)
    if header is None:
        raise UnsupportedError(f"the variable {name}")

    index = int(name.partition("_")[2])
    item = program.headers[header].fields[index]
    return BytesKind(None) if item.is_varbit else NumberKind(item.bits, item.is_signed)


@dataclass(slots=True)
class StateLayout:
    """Where a packet's variables are in its state block between ingress and egress, in bytes."""

    places: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)
    size: int = OUTCOME_BYTES

    @classmethod
    def of(cls, variables: Iterable[tuple[str, Kind]]) -> StateLayout:
        """Place variables, the widest first, so that each is aligned."""
        layout = cls()
        ordered = sorted(variables, key=lambda pair: -_bytes(pair[1].memory[0]))
        for name, kind in ordered:
            widest = min(8, _bytes(kind.memory[0]))
            layout.size += -layout.size % widest
            layout.places[name] = layout.size
            layout.kinds[name] = kind
            layout.size += sum(map(_bytes, kind.memory))

        layout.size += -layout.size % 8
        return layout


def _bytes(type_: ir.IntType) -> int:
    width: Any = type_.width
    return int(width) // 8
