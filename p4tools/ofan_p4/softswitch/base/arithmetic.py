"""The run-time half of expressions: operators that Python refuses or lets grow without bound."""

from __future__ import annotations

# Wider than any field of a packet, and little enough for a packet not to exhaust memory.
MAX_SHIFT = 1 << 13


def wrap(value: int, bits: int) -> int:
    """Return the two's complement value of the low `bits` bits."""
    if bits <= 0:
        return 0
    # A program may name a width of gigabytes.
    if value.bit_length() < bits:
        return value

    sign = 1 << bits - 1
    return ((value & (2 * sign - 1)) ^ sign) - sign


def saturate(value: int, bits: int) -> int:
    """Return the value limited to the range of `bits` unsigned bits."""
    if value.bit_length() <= bits:
        return max(0, value)

    return max(0, min(value, (1 << bits) - 1))


def saturate_signed(value: int, bits: int) -> int:
    """Return the value limited to the range of `bits` signed bits."""
    if value.bit_length() < bits:
        return value

    limit = 1 << bits - 1
    return max(-limit, min(value, limit - 1))


def div(left: int, right: int) -> int:
    """Return the quotient rounded towards zero; by zero it is 0."""
    if right == 0:
        return 0

    # Python rounds down, P4 towards zero.
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def mod(left: int, right: int) -> int:
    """Return the remainder with the sign of the dividend; by zero it is 0."""
    return left - right * div(left, right) if right else 0


def shift_left(value: int, amount: int) -> int:
    """Return `value << amount`; beyond any field's width it is 0."""
    return value << amount if 0 <= amount <= MAX_SHIFT else 0


def shift_right(value: int, amount: int) -> int:
    """Return `value >> amount`, arithmetic for negative values."""
    return value >> min(amount, MAX_SHIFT) if amount >= 0 else 0
