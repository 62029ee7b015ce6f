"""The variables of generated code: their form in machine code, their place in the state block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from llvmlite import ir

from ofan_p4.softswitch.codegen.nodes import Bytes, Local
from ofan_p4.softswitch.native.values import I32, container, stored

# Bytes are places in the frame that came in. These two stand for as many zeros, and for no bytes.
ZEROS = -1
NOTHING = -2

# The beginning of a state block: egress_spec, multicast group, priority, growth, 32 bits each.
OUTCOME_BYTES = 16


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
        """The type in which the state block keeps it."""
        return (stored(self.bits),)


@dataclass(frozen=True, slots=True)
class BytesKind:
    """Bytes of the frame: an offset, and a length where that is not always the same."""

    size: int | None

    @property
    def memory(self) -> tuple[ir.IntType, ...]:
        """The types in which the state block keeps them: offset, and length if it varies."""
        return (I32,) if self.size is not None else (I32, I32)


Kind = NumberKind | BytesKind


def kind_of(variable: Local | Bytes) -> Kind:
    """Return the kind of a variable."""
    if isinstance(variable, Bytes):
        return BytesKind(variable.size)

    return NumberKind(variable.width, variable.is_signed)


@dataclass(slots=True)
class StateLayout:
    """Where a packet's variables are in its state block between ingress and egress, in bytes."""

    variables: tuple[Local | Bytes, ...]
    places: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)
    size: int = OUTCOME_BYTES

    @classmethod
    def of(cls, variables: Sequence[Local | Bytes], first: int = OUTCOME_BYTES) -> StateLayout:
        """Place variables from byte `first` on, the widest first, so that each is aligned."""
        layout = cls(tuple(variables), size=first)
        kinds = ((variable.name, kind_of(variable)) for variable in variables)
        for name, kind in sorted(kinds, key=lambda pair: -_bytes(pair[1].memory[0])):
            # Words at most: wider numbers are aligned to words, too (`values.alignment`).
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
