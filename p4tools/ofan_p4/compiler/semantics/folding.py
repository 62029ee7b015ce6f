"""Arithmetic on values that are known at compile time (P4_16 specification, 8.5 to 8.9)."""

from __future__ import annotations

from ofan_p4.compiler.semantics.types import BOOL, Bits, Type, underlying
from ofan_p4.diagnostics import CompileError, Span

MAX_SHIFT = 4096
"""Of an `int`; a longer one has no use and would only eat memory."""

MAX_BITS = 1 << 16
"""Of both operands of an operation on `int`."""

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


def wrap(value: int, type_: Type) -> int:
    """Reduce a value to its type's range."""
    match underlying(type_):
        case Bits(width, signed=False):
            return value & ((1 << width) - 1)
        # Shifted by half the range, two's complement wraps like an unsigned number.
        case Bits(width, signed=True):
            return ((value + (1 << (width - 1))) & ((1 << width) - 1)) - (1 << (width - 1))
        case _:
            return value


def saturate(value: int, type_: Bits) -> int:
    """Clamp a value to the range of its type."""
    # int<W> spends one bit on the sign.
    magnitude = 1 << (type_.width - 1 if type_.signed else type_.width)
    lowest = -magnitude if type_.signed else 0

    return max(lowest, min(magnitude - 1, value))


def fold_unary(op: str, value: int, type_: Type) -> int:
    """Compute `op value`."""
    match op:
        case "!":
            return int(not value)
        case "~":
            return wrap(~value, type_)
        case "-":
            return wrap(-value, type_)
        case _:
            return value


def fold_comparison(op: str, left: int | str, right: int | str) -> bool:
    """Compute `left op right`; names of enum members can only be equal or not."""
    match op:
        case "==":
            return left == right
        case "!=":
            return left != right

    assert isinstance(left, int) and isinstance(right, int)
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[op]


def fold_binary(op: str, left: int, right: int, type_: Type, span: Span) -> int:
    """Compute `left op right` in a type.

    Raises CompileError for a division by zero or a negative shift.
    """
    if op in ("/", "%"):
        return _divide(op, left, right, span)
    if op in ("<<", ">>"):
        return _shift(op, left, right, type_=type_, span=span)

    if op in ("|+|", "|-|"):
        exact = left + right if op == "|+|" else left - right
        bits = underlying(type_)
        return saturate(exact, bits) if isinstance(bits, Bits) else exact

    if type_ == BOOL:
        return int(bool(left) and bool(right)) if op == "&&" else int(bool(left) or bool(right))
    # Even a product has no more bits than both operands together.
    if left.bit_length() + right.bit_length() > MAX_BITS:
        raise CompileError("this number is too large", span)

    return wrap(_exact(op, left, right), type_)


def _exact(op: str, left: int, right: int) -> int:
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "&":
            return left & right
        case "|":
            return left | right
        case "^":
            return left ^ right

    raise AssertionError(op)


def _divide(op: str, left: int, right: int, span: Span) -> int:
    if right == 0:
        raise CompileError("division by zero", span)
    # Division and modulo of `int` are defined for positive numbers only.
    if left < 0 or right < 0:
        raise CompileError(f"'{op}' is not defined for negative numbers", span)

    return left // right if op == "/" else left % right


def _shift(op: str, left: int, right: int, type_: Type, span: Span) -> int:
    if right < 0:
        raise CompileError("the number of bits to shift is negative", span)
    # Python shifts arithmetically, as int<> does; for bit<> the value is not negative.
    if op == ">>":
        return left >> min(right, MAX_SHIFT)
    # A typed number becomes 0 when shifted by its width; an `int` grows.
    if right > MAX_SHIFT and not isinstance(underlying(type_), Bits):
        raise CompileError(f"cannot shift by more than {MAX_SHIFT} bits", span)

    bits = underlying(type_)
    return wrap(left << min(right, bits.width if isinstance(bits, Bits) else right), type_)
