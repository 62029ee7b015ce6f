"""Values of P4_16 as the specification has them; every value knows its own type.

A value that the language leaves undefined (a variable before it is written, a field of an invalid
header, an element beyond the end of a stack) is `UNDEFINED`: it may be copied, but a look at it
raises `UndefinedError`, and nothing can be judged from there on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.language import tree as n


class UndefinedError(Exception):
    """The program looks at something that has no value."""


class ParserError(Exception):
    """An error of the parser; `args[0]` is its name."""


class Num(NamedTuple):
    """A number of `bit<W>` or `int<W>`; width None is `int`, which has no limits."""

    value: int
    width: int | None = None
    signed: bool = False


class Label(NamedTuple):
    """An error, or a member of an enum without an underlying type."""

    type: str
    name: str


class Varbits(NamedTuple):
    value: int
    width: int


class Undefined:
    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = Undefined()


@dataclass(slots=True)
class Struct:
    fields: dict[str, Any]


@dataclass(slots=True)
class Header:
    type: n.Struct
    fields: dict[str, Any]
    valid: bool = False
    # The other members of its union: at most one member is valid.
    others: list[Header] = field(default_factory=list)

    def make_valid(self) -> None:
        for member in self.others:
            member.make_invalid()

        self.valid = True

    def make_invalid(self) -> None:
        self.valid = False
        self.fields.update(dict.fromkeys(self.fields, UNDEFINED))


@dataclass(slots=True)
class Union:
    members: dict[str, Header]


@dataclass(slots=True)
class Stack:
    elements: list[Any]
    next: int = 0


# Numbers


def wrapped(value: int, width: int | None, signed: bool) -> Num:
    """Return a number reduced modulo 2^W."""
    if width is None:
        return Num(value)
    rest = value % (1 << width)
    if signed and rest >= 1 << (width - 1):
        rest -= 1 << width
    return Num(rest, width, signed)


def pattern(number: Num) -> int:
    """Return the bits of a number as an unsigned one (two's complement)."""
    assert number.width is not None

    return number.value % (1 << number.width)


def clamped(value: int, width: int, signed: bool) -> Num:
    """Return the nearest number of the type (saturating arithmetic)."""
    low = -(1 << (width - 1)) if signed else 0
    high = (1 << (width - 1)) - 1 if signed else (1 << width) - 1
    return Num(min(max(value, low), high), width, signed)


# Making and copying


def fresh(type_: n.Type) -> Any:
    """Return the value of a variable before it is written: headers are invalid."""
    match type_:
        case n.Struct(kind="struct", fields=fields):
            return Struct({name: fresh(inner) for name, inner in fields})
        case n.Struct(kind="header", fields=fields):
            return Header(type_, dict.fromkeys((name for name, _ in fields), UNDEFINED))
        case n.Struct(kind="header_union", fields=fields):
            members = {name: fresh(inner) for name, inner in fields}
            for name, member in members.items():
                member.others = [sibling for key, sibling in members.items() if key != name]
            return Union(members)
        case n.Stack(element, size):
            return Stack([fresh(element) for _ in range(size)])
        case n.Tuple(items):
            return Struct({str(i): fresh(inner) for i, inner in enumerate(items)})
        case _:
            return UNDEFINED


def zero(type_: n.Type, first_error: str = "NoError") -> Any:
    """Return the value in which v1model starts metadata."""
    match type_:
        case n.Bits(width, signed):
            return Num(0, width, signed)
        case n.Plain("bool"):
            return False
        case n.Plain("error"):
            return Label("error", first_error)
        case n.Enum(name, members, below):
            return Num(0, below.width, below.signed) if below else Label(name, members[0])
        case n.Struct(kind="struct", fields=fields):
            return Struct({name: zero(inner) for name, inner in fields})
        case n.Tuple(items):
            return Struct({str(i): zero(inner) for i, inner in enumerate(items)})
        case _:
            return fresh(type_)


def copied(value: Any) -> Any:
    """Return a copy that shares nothing."""
    match value:
        case Struct(fields):
            return Struct({name: copied(inner) for name, inner in fields.items()})
        case Header(type_, fields, valid):
            return Header(type_, dict(fields), valid)
        case Union(members):
            made = Union({name: copied(inner) for name, inner in members.items()})
            for name, member in made.members.items():
                member.others = [sibling for key, sibling in made.members.items() if key != name]
            return made
        case Stack(elements, following):
            return Stack([copied(element) for element in elements], following)
        case _:
            return value


def defined(value: Any) -> Any:
    """Return a value that may be looked at."""
    if value is UNDEFINED:
        raise UndefinedError
    return value


def equal(left: Any, right: Any) -> bool:
    """Return `left == right`: headers are equal if both are invalid or all is equal."""
    match left, right:
        case Struct(first), Struct(second):
            return all(equal(first[name], second[name]) for name in first)
        case Header(), Header():
            if not left.valid or not right.valid:
                return not left.valid and not right.valid
            return all(equal(left.fields[name], right.fields[name]) for name in left.fields)
        case Union(first), Union(second):
            return all(equal(first[name], second[name]) for name in first)
        case Stack(first), Stack(second):
            return all(equal(*pair) for pair in zip(first, second, strict=True))
        case Num(), Num():
            return left.value == right.value
        case _:
            return bool(defined(left) == defined(right))


# Bits of packets


def width_of(type_: n.Type) -> int:
    """Return the width of a type, that of a varbit being 0: it is given by the packet."""
    match type_:
        case n.Bits(width):
            return width
        case n.Enum(below=n.Bits(width)):
            return width
        case n.Plain("bool"):
            return 1
        case n.Struct(fields=fields):
            return sum(width_of(inner) for _, inner in fields)
        case n.Varbit():
            return 0

    raise ValueError(f"{type_} has no width")


def from_bits(type_: n.Type, bits: int) -> Any:
    """Return the value of a type that has these bits."""
    match type_:
        case n.Bits(width, signed):
            return wrapped(bits, width, signed)
        case n.Enum(below=n.Bits(width, signed)):
            return wrapped(bits, width, signed)
        case n.Plain("bool"):
            return bool(bits)
        case n.Struct(fields=fields):
            values = {}
            shift = width_of(type_)
            for name, inner in fields:
                shift -= width_of(inner)
                part = bits >> shift & ((1 << width_of(inner)) - 1)
                values[name] = from_bits(inner, part)
            return Struct(values) if type_.kind == "struct" else Header(type_, values, True)

    raise ValueError(f"{type_} has no bits")


def to_bits(value: Any) -> tuple[int, int]:
    """Return the bits of a value, and how many they are."""
    match defined(value):
        case bool(truth):
            return int(truth), 1
        case Num():
            assert value.width is not None
            return pattern(value), value.width
        case Varbits(bits, width):
            return bits, width
        case Struct(fields) | Header(fields=fields):
            total = count = 0
            for inner in fields.values():
                bits, width = to_bits(inner)
                total = total << width | bits
                count += width
            return total, count

    raise ValueError(f"{value} has no bits")


def to_bytes(values: list[Any]) -> bytes:
    """Return values side by side, filled with zeros to whole bytes (as the target's hashes do)."""
    total, width = to_bits(Struct({str(i): value for i, value in enumerate(values)}))
    filled = -width % 8
    return (total << filled).to_bytes((width + filled) // 8, "big")
