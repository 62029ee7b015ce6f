"""The types of P4_16 (language specification, chapter 7), with the signatures that make up some.

Structural types compare by value, named ones by identity.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from ofan_p4.compiler.syntax.nodes import Annotations
from ofan_p4.diagnostics import Span


@dataclass(frozen=True, slots=True)
class Bits:
    """`bit<width>` or `int<width>`."""

    width: int
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Varbit:
    width: int


@dataclass(frozen=True, slots=True)
class Simple:
    """A type without parameters: see the constants below."""

    name: str


BOOL = Simple("bool")
INT = Simple("int")
"""Integers of any size; values of it exist at compile time only."""
STRING = Simple("string")
ERROR = Simple("error")
VOID = Simple("void")
MATCH_KIND = Simple("match_kind")
DONT_CARE = Simple("_")
INDEX = Bits(32)
"""What `lastIndex` and `size` of a stack are."""


@dataclass(frozen=True, eq=False, slots=True)
class NewType:
    """`type underlying name;`: the same values, but a type of its own."""

    name: str
    underlying: Type
    annotations: Annotations = ()


@dataclass(frozen=True, eq=False, slots=True)
class Enum:
    """An enum.

    `values` are given when it has an underlying type, else members are numbered in their order.
    """

    name: str
    members: tuple[str, ...]
    underlying: Bits | None = None
    values: dict[str, int] = field(default_factory=dict)

    def value(self, member: str) -> int:
        return self.values[member] if self.underlying else self.members.index(member)


@dataclass(frozen=True, slots=True)
class StructField:
    name: str
    type: Type
    annotations: Annotations = ()
    field_lists: tuple[int, ...] = ()


class Generic(Protocol):
    """A struct with type parameters."""

    def instance(self, args: tuple[Type, ...], span: Span) -> Struct:
        """Return the struct for type arguments; the same struct for the same arguments."""

    @property
    def span(self) -> Span:
        """Where it is declared."""


@dataclass(eq=False, slots=True)
class Struct:
    """A struct, header or header_union, by `kind`."""

    kind: str
    name: str
    fields: tuple[StructField, ...]
    annotations: Annotations = ()
    # Those of a generic struct, which are part of its name in the JSON.
    args: tuple[Type, ...] = ()
    # The generic struct that it is made of, where it has arguments.
    generic: Generic | None = None

    def field_type(self, name: str) -> Type | None:
        return next((item.type for item in self.fields if item.name == name), None)


@dataclass(frozen=True, slots=True)
class Stack:
    """`element[size]`: a stack of headers or unions."""

    element: Struct
    size: int


@dataclass(frozen=True, slots=True)
class Tuple:
    elements: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """The type of `{a = 1, b = 2}` before it is converted to a struct."""

    fields: tuple[StructField, ...]


@dataclass(frozen=True, slots=True)
class Set:
    """The set of values that a select case, a table entry or a value set matches."""

    element: Type


@dataclass(frozen=True, eq=False, slots=True)
class TypeVariable:
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """Base of the expressions of the typed tree; their kinds are in `typed`."""

    span: Span
    type: Type


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """A parameter; those of a `constructor` are known at compile time."""

    span: Span
    name: str
    direction: str
    type: Type
    default: Expression | None
    annotations: Annotations = ()
    constructor: bool = False


def default_of(param: Parameter) -> Expression:
    """Return the value of a parameter without an argument, so it must have a default."""
    assert param.default is not None
    return param.default


@dataclass(frozen=True, eq=False, slots=True)
class Signature:
    """A function or method; `returns` is VOID for a constructor."""

    name: str
    type_params: tuple[TypeVariable, ...]
    params: tuple[Parameter, ...]
    returns: Type


@dataclass(frozen=True, eq=False, slots=True)
class ExternDefinition:
    name: str
    type_params: tuple[TypeVariable, ...]
    constructors: tuple[Signature, ...]
    methods: tuple[Signature, ...]


@dataclass(frozen=True, slots=True)
class Extern:
    """An extern with its type arguments."""

    definition: ExternDefinition
    args: tuple[Type, ...]

    @property
    def name(self) -> str:
        return self.definition.name


@dataclass(frozen=True, eq=False, slots=True)
class BlockDefinition:
    """The type of a parser, control or package: the parameters of its instances."""

    kind: str
    name: str
    type_params: tuple[TypeVariable, ...]
    params: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A block type with its type arguments."""

    definition: BlockDefinition
    args: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class TableResult:
    """The type of `t.apply()`: a struct of hit, miss and action_run."""


Type = (
    Bits
    | Varbit
    | Simple
    | NewType
    | Enum
    | Struct
    | Stack
    | Tuple
    | Record
    | Set
    | TypeVariable
    | Extern
    | Block
    | TableResult
)


def show(type_: Type) -> str:  # noqa: C901 one line for each type
    """Return a type as the programmer would write it."""
    match type_:
        case Bits(width, signed):
            return f"{'int' if signed else 'bit'}<{width}>"
        case Varbit(width):
            return f"varbit<{width}>"
        case Stack(element, size):
            return f"{element.name}[{size}]"
        case Tuple(elements):
            return f"tuple<{', '.join(map(show, elements))}>"
        case Record(fields):
            return f"{{{', '.join(f'{item.name} = {show(item.type)}' for item in fields)}}}"
        case Set(element):
            return f"set<{show(element)}>"
        case Extern(definition, args) | Block(definition, args):
            return definition.name + (f"<{', '.join(map(show, args))}>" if args else "")
        case Struct(name=name, args=args):
            return name + (f"<{', '.join(map(show, args))}>" if args else "")
        case TableResult():
            return "the result of apply()"
        case _:
            return type_.name


def underlying(type_: Type) -> Type:
    """Return the type below `type` declarations and enums with an underlying type."""
    # A `type` may be made of another, an enum only of bits.
    while True:
        match type_:
            case NewType(underlying=inner):
                type_ = inner
            case Enum(underlying=Bits() as inner):
                return inner
            case _:
                return type_


def is_numeric(type_: Type) -> bool:
    """Say whether a type has arithmetic."""
    return isinstance(type_, Bits) or type_ == INT


def width_of(type_: Type) -> int:
    """Return the bits of a value.

    A varbit counts with its maximum, a plain enum or error with 32.
    """
    match underlying(type_):
        case Bits(width) | Varbit(width):
            return width
        case Simple("bool"):
            return 1
        # At most one member is valid ("Header unions"), so the largest counts.
        case Struct(kind="header_union", fields=fields):
            return max((width_of(item.type) for item in fields), default=0)
        case Struct(fields=fields) | Record(fields):
            return sum(width_of(item.type) for item in fields)
        case Tuple(elements):
            return sum(width_of(element) for element in elements)
        case Stack(element, size):
            return width_of(element) * size
        case _:
            # Plain enums and errors have no width in the language; the JSON stores them as 32 bits.
            return 32


MAX_PARTS = 1 << 16
"""Fields that a type may have with all that it contains; larger ones double with every line."""


def parts_of(type_: Type) -> int:
    """Return how many fields a type has with all that it contains, at most a few times MAX_PARTS.

    Types are made of smaller ones, each of which has been found to be within MAX_PARTS.
    """
    match underlying(type_):
        case Struct(fields=fields) | Record(fields):
            return 1 + sum(parts_of(item.type) for item in fields)
        case Tuple(elements):
            return 1 + sum(parts_of(element) for element in elements)
        case Stack(element, size):
            return 1 + size * parts_of(element)
        case _:
            return 1


def has_varbit(type_: Type) -> bool:
    """Say whether a value has no fixed number of bits."""
    match underlying(type_):
        case Varbit():
            return True
        case Struct(fields=fields):
            return any(has_varbit(item.type) for item in fields)
        case Stack(element):
            return has_varbit(element)
        case _:
            return False


def substitute(type_: Type, bound: dict[TypeVariable, Type]) -> Type:
    """Replace type variables by their types."""
    # The usual case: nothing is generic, and the type itself is returned.
    if not bound:
        return type_

    match type_:
        case TypeVariable():
            return bound.get(type_, type_)
        case Tuple(elements):
            return Tuple(tuple(substitute(element, bound) for element in elements))
        case Struct() | Stack():
            return _substitute_generic(type_, bound)
        case Set(element):
            return Set(substitute(element, bound))
        case Extern(definition, args):
            return Extern(definition, tuple(substitute(arg, bound) for arg in args))
        case Block(definition, args):
            return Block(definition, tuple(substitute(arg, bound) for arg in args))
        case _:
            return type_


def _substitute_generic(type_: Struct | Stack, bound: dict[TypeVariable, Type]) -> Struct | Stack:
    """Return a generic struct, or a stack of it, for other arguments."""
    struct = type_.element if isinstance(type_, Stack) else type_
    args = tuple(substitute(arg, bound) for arg in struct.args)
    if struct.generic is None or args == struct.args:
        return type_

    made = struct.generic.instance(args, struct.generic.span)
    return Stack(made, type_.size) if isinstance(type_, Stack) else made
