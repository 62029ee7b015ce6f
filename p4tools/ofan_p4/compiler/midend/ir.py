"""The intermediate representation: operands, and the steps that work on them.

It has BMv2's objects: fields of named headers, no local variables, no calls. Steps stand in `flow`,
and all flow of a program in `switch`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ofan_p4.compiler.semantics.types import BOOL, INDEX, Stack, Struct, Type
from ofan_p4.diagnostics import Span

# Operands: values


@dataclass(frozen=True, slots=True)
class Num:
    """A number; its type is INT where no width is known."""

    value: int
    type: Type


@dataclass(frozen=True, slots=True)
class Flag:
    """`true` or `false`."""

    value: bool
    type: Type = BOOL


@dataclass(frozen=True, slots=True)
class FieldRef:
    """A field of a header or metadata instance; errors and plain enums are stored as bit<32>."""

    header: str
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class RunTime:
    """The action parameter with this index."""

    index: int
    type: Type


@dataclass(frozen=True, slots=True)
class Valid:
    """Whether a header, union or element of a stack is valid."""

    of: HeaderAt | UnionAt | ElementAt
    type: Type = BOOL


@dataclass(frozen=True, slots=True)
class Compute:
    """`left op right`, exact; `left` is None for an unary operator.

    Results are in the range of `type`.
    """

    op: str
    left: Value | None
    right: Value
    type: Type


@dataclass(frozen=True, slots=True)
class Choose:
    condition: Value
    then: Value
    otherwise: Value
    type: Type


@dataclass(frozen=True, slots=True)
class LastIndex:
    stack: str
    type: Type = INDEX


@dataclass(frozen=True, slots=True)
class LastField:
    """A field of the last valid element of a stack."""

    stack: str
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class ElementField:
    """A field of an element of a stack of so many; the index is computed.

    `offset` is the field's place in the header.
    """

    stack: str
    size: int
    index: Value
    offset: int
    type: Type


@dataclass(frozen=True, slots=True)
class Lookahead:
    """Bits of the packet that are not yet parsed."""

    offset: int
    width: int
    type: Type


@dataclass(frozen=True, slots=True)
class Widened:
    """A stored value in a wider type: BMv2 sees the same number, lists need a temporary."""

    value: FieldRef | LastField | ElementField
    type: Type


Value = (
    Num
    | Flag
    | FieldRef
    | RunTime
    | Valid
    | Compute
    | Choose
    | LastIndex
    | LastField
    | ElementField
    | Lookahead
    | Widened
)

# Operands: places


@dataclass(frozen=True, slots=True)
class HeaderAt:
    name: str
    type: Struct


@dataclass(frozen=True, slots=True)
class UnionAt:
    name: str
    type: Struct
    members: tuple[HeaderAt, ...]


@dataclass(frozen=True, slots=True)
class StackAt:
    name: str
    type: Stack
    elements: tuple[HeaderAt | UnionAt, ...]


@dataclass(frozen=True, slots=True)
class ElementAt:
    """The element of a stack at a computed index."""

    stack: StackAt
    index: Value

    @property
    def type(self) -> Struct:
        return self.stack.type.element


@dataclass(frozen=True, slots=True)
class NextAt:
    """The element of a stack that is extracted next."""

    stack: StackAt

    @property
    def type(self) -> Struct:
        return self.stack.type.element


@dataclass(frozen=True, slots=True)
class NextMember:
    """A member of the union that is extracted next."""

    stack: StackAt
    member: str
    type: Struct


@dataclass(frozen=True, slots=True)
class LastAt:
    """The last valid element of a stack."""

    stack: StackAt

    @property
    def type(self) -> Struct:
        return self.stack.type.element


@dataclass(frozen=True, slots=True)
class StructAt:
    """A struct or tuple, as the operands of its fields in order."""

    type: Type
    names: tuple[str, ...]
    items: tuple[Operand, ...]

    def item(self, name: str) -> Operand:
        return self.items[self.names.index(name)]


@dataclass(frozen=True, slots=True)
class Invalid:
    """An invalid header that is stored nowhere."""

    type: Type


Place = HeaderAt | UnionAt | StackAt | ElementAt | NextAt | NextMember | LastAt | StructAt | Invalid
Operand = Value | Place


# Steps


@dataclass(frozen=True, slots=True)
class Named:
    """An argument that names an object: `kind` is the type that the JSON gives it."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Vector:
    items: tuple[Value, ...]


Argument = Operand | Named | Text | Vector


@dataclass(frozen=True, slots=True)
class Assign:
    target: FieldRef | ElementField
    value: Value
    span: Span


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive of the target with its arguments."""

    name: str
    args: tuple[Argument, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Extract:
    """`length`, in bits, is given when the header has a varbit field."""

    target: HeaderAt | NextAt | NextMember
    length: Value | None
    span: Span


@dataclass(frozen=True, slots=True)
class Advance:
    bits: Value
    span: Span


@dataclass(frozen=True, slots=True)
class Verify:
    condition: Value
    error: Value
    span: Span


Step = Assign | Primitive | Extract | Advance | Verify
