"""Operators, casts and copies of values, as the specification defines them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tests.language import tree as n
from tests.language.values import (
    Header,
    Label,
    Num,
    Stack,
    Struct,
    Union,
    clamped,
    copied,
    equal,
    fresh,
    pattern,
    wrapped,
)


def overwrite(target: Any, value: Any) -> None:
    """Copy a struct, header, union or stack into another of its type."""
    match target, value:
        case Struct(fields), Struct(source):
            for name, inner in source.items():
                if isinstance(inner, Struct | Header | Union | Stack):
                    overwrite(fields[name], inner)
                else:
                    fields[name] = inner
        case Header(), Header(fields=source, valid=valid):
            if valid:
                target.make_valid()
                # The same dict, so that a place that a call copies its argument out to stays valid.
                target.fields.update(source)
            else:
                target.make_invalid()
        case Union(members), Union(source):
            for member in members.values():
                member.make_invalid()
            for name, inner in source.items():
                if inner.valid:
                    overwrite(members[name], inner)
        case Stack(elements, _), Stack(source, following):
            for element, inner in zip(elements, source, strict=True):
                overwrite(element, inner)
            target.next = following
        case _:
            raise TypeError(f"{value} does not fit {target}")


def sliced(value: Num, high: int, low: int) -> Num:
    return wrapped(pattern(value) >> low, high - low + 1, False)


def converted(value: Any, type_: n.Type) -> Any:
    """Return a value converted to a type by the implicit casts: of `int`, and of lists."""
    match type_, value:
        case n.Bits(width, signed), Num(number, None):
            return wrapped(number, width, signed)
        case n.Struct(kind="struct", fields=fields), Struct(members):
            return Struct(
                {
                    name: converted(copied(inner), below)
                    for (name, below), inner in zip(fields, ordered(members, fields), strict=True)
                }
            )
        case n.Tuple(items), Struct(members):
            pairs = zip(items, members.values(), strict=True)
            return Struct({str(i): converted(inner, t) for i, (t, inner) in enumerate(pairs)})
        case n.Struct(kind="header", fields=fields), Struct(members):
            made = fresh(type_)
            made.valid = True
            for (name, below), inner in zip(fields, ordered(members, fields), strict=True):
                made.fields[name] = converted(inner, below)
            return made
        case _:
            return copied(value)


def ordered(items: dict[str, Any], fields: tuple[tuple[str, n.Type], ...]) -> list[Any]:
    """Return the items of a list in the order of the fields, by name where they have names."""
    if all(name in items for name, _ in fields):
        return [items[name] for name, _ in fields]
    return list(items.values())


def cast(value: Any, type_: n.Type) -> Any:
    """Return `(type) value`."""
    match type_, value:
        case (n.Bits(width, signed), bool() | Num()) | (
            n.Enum(below=n.Bits(width, signed)),
            bool() | Num(),
        ):
            number = int(value) if isinstance(value, bool) else value.value
            return wrapped(number, width, signed)
        case n.Plain("bool"), bool() | Num():
            return value if isinstance(value, bool) else value.value != 0
        case n.Plain("int"), Num():
            return Num(value.value)
        case _:
            return converted(value, type_)


def unary(op: str, value: Any) -> Any:
    if op == "!":
        return not value
    exact = {"-": -value.value, "~": ~value.value, "+": value.value}[op]
    return wrapped(exact, value.width, value.signed)


def binary(op: str, left: Any, right: Any) -> Any:
    """Return `left op right`."""
    if op in ("==", "!="):
        return equal(left, right) == (op == "==")
    if op in ("<<", ">>"):
        return shifted(op, left, right.value)
    if op == "++":
        bits = pattern(left) << right.width | pattern(right)
        return wrapped(bits, left.width + right.width, left.signed)

    # An `int` takes the type of the other side.
    if left.width is None and right.width is not None:
        left = wrapped(left.value, right.width, right.signed)
    elif right.width is None and left.width is not None:
        right = wrapped(right.value, left.width, left.signed)

    if op in SATURATING:
        return clamped(SATURATING[op](left.value, right.value), left.width, left.signed)
    if op in ORDER:
        return ORDER[op](left.value, right.value)

    return wrapped(ARITHMETIC[op](left.value, right.value), left.width, left.signed)


ORDER: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
SATURATING: dict[str, Callable[[int, int], int]] = {"|+|": operator.add, "|-|": operator.sub}
ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}


def shifted(op: str, left: Num, places: int) -> Num:
    """Shift; places beyond the width move everything out, and leave the sign of an `int<W>`."""
    if left.width is not None:
        places = min(places, left.width)
    exact = left.value << places if op == "<<" else left.value >> places
    return wrapped(exact, left.width, left.signed)


def label(type_: n.Type, name: str) -> Any:
    """Return a member of an enum or an error."""
    match type_:
        case n.Enum(_, members, n.Bits(width, signed), values):
            return Num(values[members.index(name)], width, signed)
        case n.Enum(of):
            return Label(of, name)

    return Label("error", name)


def shift(stack: Stack, places: int, forward: bool) -> None:
    """`push_front` and `pop_front`."""
    size = len(stack.elements)
    old = [copied(element) for element in stack.elements]
    for i, element in enumerate(stack.elements):
        source = i - places if forward else i + places
        if 0 <= source < size:
            overwrite(element, old[source])
        elif isinstance(element, Union):
            for member in element.members.values():
                member.make_invalid()
        else:
            element.make_invalid()

    moved = stack.next + places if forward else stack.next - places
    stack.next = min(max(moved, 0), size)
