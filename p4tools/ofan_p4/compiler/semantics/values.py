"""Demands on an expression: a value, a known number, a left value."""

from __future__ import annotations

from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.conversion import coerce, coerce_set
from ofan_p4.compiler.semantics.scope import Context, fail
from ofan_p4.compiler.syntax import nodes as n


def check_value(node: n.Expression, context: Context) -> ty.Expression:
    """Type an expression that must be a value, not a call without a result."""
    value = context.check(node)
    # `t.apply()` without `.hit` is a struct in the language; no one may store it.
    if value.type in (ty.VOID, t.RESULT):
        fail(f"this is not a value but {ty.show(value.type)}", node.span)

    return value


def check_as(node: n.Expression, target: ty.Type, context: Context) -> ty.Expression:
    """Type an expression and convert it implicitly to `target`."""
    return coerce(context.check(node), target)


def check_set(node: n.Expression, element: ty.Type, context: Context) -> ty.Expression:
    """Type the key of a select case or an entry.

    That is a value, `value &&& mask`, `low .. high`, a value set, or `_`.
    """
    match node:
        case n.DefaultExpression(span):
            return t.Everything(span, ty.Set(element))
        case n.Binary(span, "&&&", left, right):
            key: ty.Expression = t.Masked(
                span, ty.Set(element), context.check(left), context.check(right)
            )
        case n.Binary(span, "..", left, right):
            key = t.Range(span, ty.Set(element), context.check(left), context.check(right))
        case n.Name(span, name) if isinstance(symbol := context.scope.find(name), td.ValueSet):
            return t.ValueSetRef(span, ty.Set(symbol.type), symbol)
        case _:
            key = context.check(node)

    return coerce_set(key, element)


def constant_int(node: n.Expression, context: Context, noun: str, low: int, high: int) -> int:
    """Evaluate an expression that must be a known integer between `low` and `high`."""
    value = context.check(node)
    if not isinstance(value, t.Literal) or not ty.is_numeric(ty.underlying(value.type)):
        fail(f"{noun} must be known at compile time", node.span)

    number = (
        value.type.value(str(value.value)) if isinstance(value.type, ty.Enum) else int(value.value)
    )
    if not low <= number <= high:
        fail(f"{noun} must be between {low} and {high}, found {number}", node.span)

    return number


# Properties of a checked expression


def is_left_value(node: n.Expression, value: ty.Expression) -> bool:
    """Return whether an expression can be written to; `value` is the typed `node`."""
    return _is_path(node) and _is_writable(value)


def _is_path(node: n.Expression) -> bool:
    """Say whether an expression is a name or a part of one ("L-values"): a cast is a value.

    Nothing is left in `value` of a cast to the same type, nor of a choice that is known.
    """
    while isinstance(node, n.Member | n.Index | n.Slice):
        node = node.base

    return isinstance(node, n.Name)


def _is_writable(value: ty.Expression) -> bool:
    match value:
        case t.Ref(_, _, ty.Parameter() as declaration):
            # The other parameters can only be read ("Calling convention").
            return declaration.direction in ("out", "inout")
        case t.Ref():
            return isinstance(value.declaration, td.Variable)
        case t.Field(_, _, base) | t.Element(_, _, base) | t.Slice(_, _, base):
            return _is_writable(base)
        case t.StackMember(_, _, base, which):
            # `next` may be an out argument, as of extract(); assignments refuse it themselves.
            return which != "lastIndex" and _is_writable(base)
        case _:
            return False


def is_compile_time(value: ty.Expression) -> bool:
    """Say whether the mid-end can compute a value from constructor arguments alone."""
    match value:
        case t.Literal():
            return True
        # Its value is known when the mid-end makes the instance.
        case t.Ref(_, _, ty.Parameter(constructor=constructor)):
            return constructor
        case t.Unary(_, _, _, operand) | t.Cast(_, _, operand) | t.Slice(_, _, operand):
            return is_compile_time(operand)
        case t.Binary(_, _, _, left, right):
            return is_compile_time(left) and is_compile_time(right)
        case t.Ternary(_, _, condition, then, otherwise):
            return all(map(is_compile_time, (condition, then, otherwise)))
        case t.Aggregate(_, _, items):
            return all(map(is_compile_time, items))
        case _:
            return False


def is_known_set(value: ty.Expression) -> bool:
    """Return whether the key of a case or entry is known at compile time."""
    match value:
        case t.Everything() | t.ValueSetRef():
            return True
        case t.Masked(_, _, first, second) | t.Range(_, _, first, second):
            return is_compile_time(first) and is_compile_time(second)
        case _:
            return is_compile_time(value)
