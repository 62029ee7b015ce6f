"""Implicit conversions, explicit casts and the inference of type arguments."""

from __future__ import annotations

from dataclasses import replace

from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.folding import wrap
from ofan_p4.compiler.semantics.typed import (
    Aggregate,
    Cast,
    Everything,
    InvalidHeader,
    Literal,
    Masked,
    Range,
    Ternary,
    ValueSetRef,
)
from ofan_p4.compiler.semantics.types import Expression, Type, TypeVariable, show
from ofan_p4.diagnostics import CompileError


def coerce(value: Expression, target: Type) -> Expression:
    """Convert implicitly to `target`.

    Raises CompileError where the language has no such conversion.
    """
    converted = try_coerce(value, target)
    if converted is None:
        raise CompileError(f"expected {show(target)}, found {show(value.type)}", value.span)

    return converted


def try_coerce(value: Expression, target: Type) -> Expression | None:
    """Convert implicitly to `target`, or return None."""
    if value.type == target:
        return value

    # The type of these comes from the place where they stand.
    match value, target:
        case InvalidHeader(), ty.Struct(kind="header" | "header_union"):
            return replace(value, type=target)
        case Ternary(), _:
            return _coerce_ternary(value, target)
        case Aggregate(), _:
            return _coerce_aggregate(value, target)

    # A number without a width takes any type made of bits, but is no member of an enum.
    if (
        value.type == ty.INT
        and isinstance(ty.underlying(target), ty.Bits)
        and not isinstance(target, ty.Enum)
    ):
        return _from_int(value, target)

    # From an enum to its underlying type, never back ("Implicit casts").
    if isinstance(value.type, ty.Enum) and value.type.underlying == target:
        if isinstance(value, Literal):
            return _cast_literal(value, target)

        return Cast(value.span, target, value)

    return None


def _from_int(value: Expression, target: Type) -> Expression:
    if isinstance(value, Literal) and isinstance(value.value, int):
        return Literal(value.span, target, wrap(value.value, target))

    return Cast(value.span, target, value)


def _coerce_ternary(value: Ternary, target: Type) -> Expression | None:
    then = try_coerce(value.then, target)
    otherwise = try_coerce(value.otherwise, target)
    if then is None or otherwise is None:
        return None

    return Ternary(value.span, target, value.condition, then, otherwise)


def _coerce_aggregate(value: Aggregate, target: Type) -> Expression | None:
    """Convert `{a, b}` by position and `{x = a, y = b}` by name, item by item."""
    match target:
        case ty.Struct(kind="struct" | "header", fields=fields):
            targets: tuple[Type, ...] = tuple(item.type for item in fields)
            names: tuple[str, ...] | None = tuple(item.name for item in fields)
        case ty.Tuple(elements):
            targets = elements
            names = None
        case _:
            return None

    items = _reorder(value, names)
    if items is None or len(items) != len(targets):
        return None

    return Aggregate(
        value.span,
        target,
        tuple(coerce(item, goal) for item, goal in zip(items, targets, strict=True)),
    )


def _reorder(value: Aggregate, names: tuple[str, ...] | None) -> tuple[Expression, ...] | None:
    if not isinstance(value.type, ty.Record):
        return value.items if isinstance(value.type, ty.Tuple) else None
    if names is None:
        return None

    fields = {
        item.name: expression
        for item, expression in zip(value.type.fields, value.items, strict=True)
    }

    # All fields or an error: `...` in a struct expression is not supported.
    if sorted(fields) != sorted(names):
        odd = sorted(set(fields) ^ set(names))
        raise CompileError(
            f"field '{odd[0]}' is {'unknown' if odd[0] in fields else 'missing'}", value.span
        )

    return tuple(fields[name] for name in names)


def cast_to(value: Expression, target: Type) -> Expression:
    """Convert explicitly, `(target) value`; raises CompileError where the language forbids it."""
    implicit = try_coerce(value, target)
    if implicit is not None:
        return implicit

    source = value.type
    if not _castable(source, target):
        raise CompileError(f"cannot cast {show(source)} to {show(target)}", value.span)
    if isinstance(value, Literal):
        return _cast_literal(value, target)

    return Cast(value.span, target, value)


def _cast_literal(value: Literal, target: Type) -> Expression:
    if isinstance(value.value, str):
        assert isinstance(value.type, ty.Enum)
        number = value.type.value(value.value)
    else:
        number = int(value.value)

    # A number that no member has is allowed; it stays a cast, since it has no name.
    if isinstance(target, ty.Enum):
        member = next((name for name in target.members if target.value(name) == number), None)
        return Literal(value.span, target, member) if member else Cast(value.span, target, value)

    if target == ty.BOOL:
        return Literal(value.span, target, int(bool(number)))

    return Literal(value.span, target, wrap(number, target))


def _castable(source: Type, target: Type) -> bool:
    """Say whether a cast exists between two types, seen through `type` declarations and enums."""
    if any(isinstance(side, ty.Enum) and side.underlying is None for side in (source, target)):
        return False
    # To and from a `type` only its underlying type.
    if isinstance(target, ty.NewType) or isinstance(source, ty.NewType):
        return source == ty.INT or ty.underlying(source) == ty.underlying(target)

    match ty.underlying(source), ty.underlying(target):
        case ty.Bits(width, signed), ty.Bits(new_width, new_signed):
            # Width and sign do not change in one cast ("Explicit casts").
            return width == new_width or signed == new_signed
        case (ty.Bits(1, False), ty.Simple("bool")) | (ty.Simple("bool"), ty.Bits(1, False)):
            return True
        case ty.Simple("int"), ty.Bits() | ty.Simple("bool") | ty.Simple("int"):
            return True
        case ty.Bits(), ty.Simple("int"):
            return True
        case source_type, target_type:
            return source_type == target_type


def coerce_set(key: Expression, element: Type) -> Expression:
    """Convert the key of a case or entry to a set of `element`."""
    match key:
        case Everything() | ValueSetRef():
            return key
        case Masked(span, _, value, mask):
            return Masked(
                span, ty.Set(element), _key_value(value, element), _key_value(mask, element)
            )
        case Range(span, _, low, high):
            return Range(span, ty.Set(element), _key_value(low, element), _key_value(high, element))
        case _:
            return _key_value(key, element)


def _key_value(value: Expression, element: Type) -> Expression:
    """Convert a value; an enum with an underlying type and its numbers match each other."""
    converted = try_coerce(value, element)
    if (
        converted is None
        and isinstance(element, ty.Enum | ty.NewType)
        and ty.is_numeric(ty.underlying(value.type))
    ):
        converted = cast_to(value, element)

    return coerce(value, element) if converted is None else converted


def unify(pattern: Type, actual: Type, bound: dict[TypeVariable, Type]) -> bool:
    """Bind the type variables of `pattern` so that it becomes `actual`; say whether that can be."""
    match pattern:
        case TypeVariable():
            # A variable that is not being inferred is a type like others.
            return _bind(pattern, actual, bound) if pattern in bound else pattern == actual
        case ty.Tuple(elements) if isinstance(actual, ty.Tuple) and len(elements) == len(
            actual.elements
        ):
            return _unify_all(elements, actual.elements, bound)
        case ty.Extern(definition, args) if (
            isinstance(actual, ty.Extern) and actual.definition is definition
        ):
            return _unify_all(args, actual.args, bound)
        case ty.Struct(generic=generic, args=args) if (
            isinstance(actual, ty.Struct) and generic is not None and actual.generic is generic
        ):
            return _unify_all(args, actual.args, bound)
        case ty.Stack(element, size) if isinstance(actual, ty.Stack) and actual.size == size:
            return unify(element, actual.element, bound)
        case _:
            return pattern == actual or not _has_variables(pattern, bound)


def _unify_all(
    patterns: tuple[Type, ...], actual: tuple[Type, ...], bound: dict[TypeVariable, Type]
) -> bool:
    return all(unify(left, right, bound) for left, right in zip(patterns, actual, strict=True))


def _bind(variable: TypeVariable, actual: Type, bound: dict[TypeVariable, Type]) -> bool:
    current = bound[variable]
    # An `int` gives way to a type with a width: `f(1, x)` takes the type of x.
    if current in (ty.DONT_CARE, ty.INT) or (current == actual):
        bound[variable] = actual
        return True

    return actual == ty.INT


def _has_variables(type_: Type, bound: dict[TypeVariable, Type]) -> bool:
    return any(variable in bound for variable in _variables(type_))


def _variables(type_: Type) -> list[TypeVariable]:
    match type_:
        case TypeVariable():
            return [type_]
        case ty.Tuple(elements) | ty.Extern(_, elements) | ty.Struct(args=elements):
            return [variable for element in elements for variable in _variables(element)]
        case ty.Stack(element):
            return _variables(element)
        case _:
            return []
