"""Operators between two typed operands: the types that they take, and constants computed."""

from __future__ import annotations

from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.conversion import coerce, try_coerce
from ofan_p4.compiler.semantics.folding import COMPARISONS, fold_binary, fold_comparison
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.compiler.syntax.expressions import MAX_WIDTH
from ofan_p4.diagnostics import Span

SHIFTS = ("<<", ">>")
ORDERED = ("<", "<=", ">", ">=")
LOGICAL = ("&&", "||")
MAX_TEXT = 1 << 16


def binary(span: Span, op: str, left: ty.Expression, right: ty.Expression) -> ty.Expression:
    """Type `left op right` and compute it if both are known."""
    # Logical operators want bool, and the next two take operands of different types; for the rest,
    # both operands first get one type.
    if op in LOGICAL:
        return _logical(span, op, coerce(left, ty.BOOL), coerce(right, ty.BOOL))
    if op == "++":
        return _concatenation(span, left, right)
    if op in SHIFTS:
        return _shift(span, op, left, right)

    if op in ("/", "%"):
        _check_division(span, op, left, right)

    left, right = balance(span, op, left, right)
    if op in COMPARISONS:
        return _comparison(span, op, left, right)

    _require_arithmetic(span, op, left)
    if isinstance(left, t.Literal) and isinstance(right, t.Literal):
        value = fold_binary(
            op, left=int(left.value), right=int(right.value), type_=left.type, span=span
        )
        return t.Literal(span, left.type, value)

    return t.Binary(span, left.type, op, left, right)


def _logical(span: Span, op: str, left: ty.Expression, right: ty.Expression) -> ty.Expression:
    if isinstance(left, t.Literal):
        # Only a known left side decides: the right one may have effects, which `&&` and `||` skip.
        decided = bool(left.value) == (op == "||")
        return left if decided else right

    return t.Binary(span, ty.BOOL, op, left, right)


def balance(
    span: Span, op: str, left: ty.Expression, right: ty.Expression
) -> tuple[ty.Expression, ty.Expression]:
    """Give both operands one type."""
    # Two members of one enum are compared as such, others by their numbers.
    if op not in ("==", "!=") or left.type != right.type:
        left = _as_number(left)
        right = _as_number(right)

    if left.type == right.type and not isinstance(left.type, ty.Tuple | ty.Record):
        return left, right

    # An `int` or a list takes the type of the other side, whichever side that is.
    for first, second, swap in ((left, right, False), (right, left, True)):
        converted = try_coerce(first, second.type)
        if converted is not None:
            return (second, converted) if swap else (converted, second)

    return fail(f"'{op}' cannot be applied to {ty.show(left.type)} and {ty.show(right.type)}", span)


def _as_number(value: ty.Expression) -> ty.Expression:
    if isinstance(value.type, ty.Enum) and value.type.underlying:
        return coerce(value, value.type.underlying)

    return value


def _comparison(span: Span, op: str, left: ty.Expression, right: ty.Expression) -> ty.Expression:
    if op in ORDERED and not ty.is_numeric(ty.underlying(left.type)):
        fail(f"'{op}' cannot be applied to {ty.show(left.type)}", span)

    nothing = isinstance(left.type, ty.Simple) and left.type not in (ty.BOOL, ty.INT, ty.ERROR)
    if nothing or isinstance(left.type, ty.TypeVariable):
        fail(f"'{op}' cannot be applied to {ty.show(left.type)}", span)

    if isinstance(left, t.Literal) and isinstance(right, t.Literal):
        return t.Literal(span, ty.BOOL, int(fold_comparison(op, left.value, right.value)))

    return t.Binary(span, ty.BOOL, op, left, right)


def _require_arithmetic(span: Span, op: str, operand: ty.Expression) -> None:
    """Refuse operands without arithmetic, and divisions that the target cannot do at run time."""
    if not ty.is_numeric(operand.type) or (op in ("|+|", "|-|") and operand.type == ty.INT):
        fail(f"'{op}' cannot be applied to {ty.show(operand.type)}", span)

    # Neither division nor modulo is defined for int<>.
    if op in ("/", "%") and isinstance(operand.type, ty.Bits) and operand.type.signed:
        fail(f"'{op}' cannot be applied to {ty.show(operand.type)}", span)


def _check_division(span: Span, op: str, left: ty.Expression, right: ty.Expression) -> None:
    """Refuse a division by a constant zero, or with a negative constant."""
    constants = [
        side.value
        for side in (left, right)
        if isinstance(side, t.Literal) and isinstance(side.value, int)
    ]
    if any(value < 0 for value in constants):
        fail(f"'{op}' is not defined for negative numbers", span)

    if isinstance(right, t.Literal) and right.value == 0:
        fail("division by zero", span)


def _concatenation(span: Span, left: ty.Expression, right: ty.Expression) -> ty.Expression:
    """`left ++ right`; the result has the sign of the left operand."""
    left = _as_number(left)
    right = _as_number(right)
    if left.type == right.type == ty.STRING:
        assert isinstance(left, t.Literal) and isinstance(right, t.Literal)
        text = f"{left.value}{right.value}"
        if len(text) > MAX_TEXT:
            fail(f"this string has more than {MAX_TEXT} characters", span)

        return t.Literal(span, ty.STRING, text)

    if not isinstance(left.type, ty.Bits) or not isinstance(right.type, ty.Bits):
        types = f"{ty.show(left.type)} and {ty.show(right.type)}"
        fail(f"'++' needs operands with a width, found {types}", span)

    joined = ty.Bits(left.type.width + right.type.width, left.type.signed)
    if joined.width > MAX_WIDTH:
        fail(f"this number has more than {MAX_WIDTH} bits", span)

    if isinstance(left, t.Literal) and isinstance(right, t.Literal):
        low = int(right.value) & ((1 << right.type.width) - 1)
        return t.Literal(span, joined, int(left.value) << right.type.width | low)

    return t.Binary(span, joined, "++", left, right)


def _shift(span: Span, op: str, left: ty.Expression, right: ty.Expression) -> ty.Expression:
    left = _as_number(left)
    right = _as_number(right)
    if not ty.is_numeric(left.type):
        fail(f"'{op}' cannot be applied to {ty.show(left.type)}", span)

    if not ty.is_numeric(right.type) or (isinstance(right.type, ty.Bits) and right.type.signed):
        fail(
            f"the number of bits to shift must be unsigned, found {ty.show(right.type)}", right.span
        )

    if isinstance(left, t.Literal) and isinstance(right, t.Literal):
        return t.Literal(
            span,
            left.type,
            fold_binary(
                op, left=int(left.value), right=int(right.value), type_=left.type, span=span
            ),
        )

    if left.type == ty.INT:
        fail("the left side of a shift by a run-time value needs a width", left.span)

    if isinstance(right, t.Literal) and int(right.value) < 0:
        fail("the number of bits to shift is negative", right.span)

    return t.Binary(span, left.type, op, left, right)
