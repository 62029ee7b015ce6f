"""Numbers of known range in LLVM IR.

P4 as BMv2 runs it computes with integers of any size and cuts them when it stores them. Here every
number knows how many bits it needs, so that a container is found that holds it exactly: nothing
wraps unless the program wraps it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from llvmlite import ir

# Wider numbers would make machine code of megabytes.
MAX_BITS = 4096
MAX_LINES = 60_000
I1 = ir.IntType(1)
I8 = ir.IntType(8)
I16 = ir.IntType(16)
I32 = ir.IntType(32)
I64 = ir.IntType(64)
WORD_BITS = 64
POINTER = I8.as_pointer()

Builder: TypeAlias = ir.IRBuilder


class UnsupportedError(Exception):
    """Something that only the Python engine can run; the message names it."""


class Limit(Enum):
    """Why machine code refuses a node that it has a rule for."""

    NUMBERS = f"a number of more than {MAX_BITS:,} bits"
    DIVISIONS = "a division of more than 64 bits, or of a negative number, in a hash or a timestamp"
    HASHES = "a hash of more than 2,048 bits where a header may be missing"
    RANDOM = "a random number of more than 62 bits"
    VALUE_SETS = "a value set with a part of more than 64 bits"
    LOGS = "a logged value of more than 63 bits"
    LISTS = "a field list or a digest with varbits"
    VARBITS = "a varbit without a maximum that leaves again"
    LINES = f"a program of more than {MAX_LINES:,} lines of LLVM's, which would take it minutes"
    KINDS = "bytes in place of a number, or a number in place of bytes"


def beyond(limit: Limit) -> UnsupportedError:
    """Return the error that something is beyond a limit."""
    return UnsupportedError(f"{limit.name}: {limit.value}")


@dataclass(frozen=True, slots=True)
class Number:
    """An integer: `value` holds it in a container of at least `bits` bits.

    It is below 2**bits, or, signed, from -2**(bits - 1) to 2**(bits - 1) - 1.
    """

    value: Any
    bits: int
    is_signed: bool = False

    @property
    def width(self) -> int:
        """The bits of the container."""
        return int(self.value.type.width)

    @property
    def signed_bits(self) -> int:
        """The bits that it needs as a signed number."""
        return self.bits if self.is_signed else self.bits + 1


def container(bits: int) -> ir.IntType:
    """Return the type that numbers of so many bits are computed in."""
    if bits > MAX_BITS:
        raise beyond(Limit.NUMBERS)
    if bits <= 32:
        return I32

    return ir.IntType(-(-bits // WORD_BITS) * WORD_BITS)


def stored(bits: int) -> ir.IntType:
    """Return the type that numbers of so many bits are kept in."""
    # Memory has the smaller types that computing does not need: a byte for a flag.
    for width in (8, 16, 32):
        if bits <= width:
            return ir.IntType(width)

    return container(bits)


def alignment(type_: ir.IntType) -> int:
    """Return how a number in memory is aligned: to words at most, where LLVM would take more."""
    width: Any = type_.width
    return min(int(width) // 8, 8)


def constant(number: int) -> Number:
    """Return a constant."""
    if number < 0:
        bits = (~number).bit_length() + 1
        return Number(ir.Constant(container(bits), number), bits, is_signed=True)

    # A constant has exactly its bits, so that results with it stay narrow.
    bits = number.bit_length()
    return Number(ir.Constant(container(bits), number), bits)


def as_type(builder: Builder, number: Number, type_: ir.IntType) -> Any:
    """Return the number in another container, its low bits where that is smaller."""
    if number.width == type_.width:
        return number.value
    if number.width > type_.width:
        return builder.trunc(number.value, type_)

    return (builder.sext if number.is_signed else builder.zext)(number.value, type_)


def cut(builder: Builder, number: Number, bits: int) -> Number:
    """Return the low bits of a number, as an unsigned number."""
    if not number.is_signed and number.bits <= bits:
        return number

    type_ = container(bits)
    # The type alone cuts where the container has just so many bits.
    value = as_type(builder, number, type_)
    if type_.width > bits:
        value = builder.and_(value, ir.Constant(type_, (1 << bits) - 1))

    return Number(value, bits)


def wrapped(builder: Builder, number: Number, bits: int) -> Number:
    """Return the two's complement value of the low bits of a number."""
    if bits <= 0:
        return constant(0)

    type_ = container(bits)
    value = as_type(builder, number, type_)
    # Up to the top of the container and back: the arithmetic shift copies the sign bit.
    spare = type_.width - bits
    if spare:
        by = ir.Constant(type_, spare)
        value = builder.ashr(builder.shl(value, by), by)

    return Number(value, bits, is_signed=True)


def common(builder: Builder, left: Number, right: Number) -> tuple[Any, Any, int, bool]:
    """Return both numbers in one container that holds either, with the bits and whether signed."""
    is_signed = left.is_signed or right.is_signed
    # One signed side makes both signed: an unsigned one needs a bit more then, for its sign.
    bits = max(left.signed_bits, right.signed_bits) if is_signed else max(left.bits, right.bits, 1)
    type_ = container(bits)
    return as_type(builder, left, type_), as_type(builder, right, type_), bits, is_signed


def added(builder: Builder, left: Number, right: Number, op: str) -> Number:
    """Return the exact sum, difference or product (`op` is add, sub or mul)."""
    is_signed = left.is_signed or right.is_signed or op == "sub"
    # A product needs the bits of both sides, a sum or difference one more than the longer side.
    if op == "mul":
        bits = left.signed_bits + right.signed_bits if is_signed else left.bits + right.bits
    else:
        bits = 1 + (
            max(left.signed_bits, right.signed_bits) if is_signed else max(left.bits, right.bits)
        )

    type_ = container(bits)
    value = getattr(builder, op)(as_type(builder, left, type_), as_type(builder, right, type_))
    return Number(value, bits, is_signed)


def modular(builder: Builder, left: Number, right: Number, op: str, bits: int) -> Number:
    """Return the low bits of a sum, difference or product."""
    type_ = container(bits)
    value = getattr(builder, op)(as_type(builder, left, type_), as_type(builder, right, type_))
    return cut(builder, Number(value, type_.width), bits)


def bitwise(builder: Builder, left: Number, right: Number, op: str) -> Number:
    """Return the bitwise combination (`op` is and_, or_ or xor), as of endless two's complement."""
    if op == "and_" and not (left.is_signed and right.is_signed):
        # The unsigned side has zeros above its bits, and so has the result.
        bits = min(number.bits for number in (left, right) if not number.is_signed)
        left = cut(builder, left, bits)
        right = cut(builder, right, bits)
        type_ = container(bits)
        return Number(
            builder.and_(as_type(builder, left, type_), as_type(builder, right, type_)), bits
        )

    first, second, bits, is_signed = common(builder, left, right)
    return Number(getattr(builder, op)(first, second), bits, is_signed)


def compared(builder: Builder, op: str, left: Number, right: Number) -> Any:
    """Return a comparison of two numbers, whatever their ranges, as one bit."""
    first, second, _, is_signed = common(builder, left, right)
    return (builder.icmp_signed if is_signed else builder.icmp_unsigned)(op, first, second)


def selected(builder: Builder, condition: Any, left: Number, right: Number) -> Number:
    """Return the number that a condition selects."""
    first, second, bits, is_signed = common(builder, left, right)
    return Number(builder.select(condition, first, second), bits, is_signed)
