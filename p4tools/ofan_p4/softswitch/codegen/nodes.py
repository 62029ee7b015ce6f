"""The form of a program before text or machine code: expressions with widths and signs.

The generator builds these nodes, and two printers write them: `printing` as Python, `native` as
LLVM IR. A printer has no rule for a node that it cannot write. Statements are in `statements`.

Every expression has `bits`, the largest width of its value if the value is not negative; None: the
value may be negative or of any size. Arithmetic has integers of any size, as in BMv2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


class Expression:
    """Base of all expressions."""

    __slots__ = ()

    @property
    def bits(self) -> int | None:
        """The most bits that the value can have when it is not negative."""
        return None


# More arms in a row are split into halves first: Python reads no chain of 2,000 tests, and a
# shorter chain takes it the square of the length.
MOST_TESTS = 32


@dataclass(frozen=True, slots=True)
class Number(Expression):
    """A constant."""

    value: int

    @property
    def bits(self) -> int | None:
        """None: it is negative."""
        return self.value.bit_length() if self.value >= 0 else None


@dataclass(frozen=True, slots=True)
class Truth(Expression):
    """True or false."""

    value: bool
    bits = 1


@dataclass(frozen=True, slots=True)
class Zeros(Expression):
    """So many zero bytes."""

    size: int


@dataclass(frozen=True, slots=True)
class Local(Expression):
    """A number of a known width in a variable; `is_state`: it is part of the packet's state."""

    name: str
    width: int
    is_signed: bool = False
    is_state: bool = False

    @property
    def bits(self) -> int | None:
        """None: it is signed."""
        return None if self.is_signed else self.width


@dataclass(frozen=True, slots=True)
class Bytes(Expression):
    """Bytes of the packet in a variable of its state: `size` of them, None: `most` at most."""

    name: str
    size: int | None
    most: int = 0
    is_state = True


@dataclass(frozen=True, slots=True)
class Temporary(Expression):
    """A variable that holds its last value, a number or bytes, for a few statements."""

    name: str
    bits: int | None = None


Variable: TypeAlias = Local | Bytes | Temporary


@dataclass(frozen=True, slots=True)
class Argument(Expression):
    """A number that the switch hands over."""

    name: str


@dataclass(frozen=True, slots=True)
class DropPort(Expression):
    """The egress_spec that means drop."""

    bits = 9


def _sum_bits(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else max(left, right) + 1


def _product_bits(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


def _and_bits(left: int | None, right: int | None) -> int | None:
    # A mask bounds even a negative number, which is two's complement without end.
    widths = [bits for bits in (left, right) if bits is not None]
    return min(widths) if widths else None


def _widest(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else max(left, right)


# Whatever else there is (a difference, a quotient) may be negative or of any size.
_BITS: dict[str, Callable[[int | None, int | None], int | None]] = {
    "+": _sum_bits,
    "*": _product_bits,
    "&": _and_bits,
    "|": _widest,
    "^": _widest,
}


@dataclass(frozen=True, slots=True)
class Binary(Expression):
    """Exact arithmetic (`+`, `-`, `*`), or bits of two's complement of any size (`&`, `|`, `^`)."""

    op: str
    left: Expression
    right: Expression

    @property
    def bits(self) -> int | None:
        """The width that the operands allow."""
        rule = _BITS.get(self.op)
        return None if rule is None else rule(self.left.bits, self.right.bits)


@dataclass(frozen=True, slots=True)
class Shift(Expression):
    """A shift (`<<` or `>>`) by a constant."""

    op: str
    value: Expression
    amount: int

    @property
    def bits(self) -> int | None:
        """Shifting right by more than there is leaves no bits, not a negative number of them."""
        bits = self.value.bits
        by = self.amount if self.op == "<<" else -self.amount
        return None if bits is None else max(bits + by, 0)


@dataclass(frozen=True, slots=True)
class Sum(Expression):
    """The exact sum of some terms."""

    terms: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Joined(Expression):
    """(value, width) parts side by side, the first one most significant; each is in its width."""

    parts: tuple[tuple[Expression, int], ...]

    @property
    def bits(self) -> int:
        """The width of all parts."""
        return sum(width for _, width in self.parts)


@dataclass(frozen=True, slots=True)
class Inverse(Expression):
    """`~`, of two's complement of any size: negative for a value that is not negative."""

    value: Expression


@dataclass(frozen=True, slots=True)
class Quotient(Expression):
    """A number that is not negative, divided by a constant and rounded down."""

    value: Expression
    by: int


@dataclass(frozen=True, slots=True)
class Remainder(Expression):
    """A number that is not negative, modulo a size; a size of 0 counts as 1, as in BMv2."""

    value: Expression
    size: Expression

    @property
    def bits(self) -> int | None:
        """The width of a number below the size."""
        if isinstance(self.size, Number):
            return (self.size.value - 1).bit_length()

        return self.size.bits


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """An operator of `ofan_p4.softswitch.base.arithmetic` or `hashes`, `min` or `max`."""

    function: str
    parts: tuple[Expression, ...]
    bits: int | None = None


@dataclass(frozen=True, slots=True)
class Cut(Expression):
    """A value in so many bits, by `wrap`, `saturate` or `saturate_signed` of `arithmetic`."""

    function: str
    value: Expression
    to: int
    bits: int | None = None


@dataclass(frozen=True, slots=True)
class CutByValue(Expression):
    """A value cut to a width that a second value has: wrapped or limited, at run time."""

    function: str
    value: Expression
    to: Expression


@dataclass(frozen=True, slots=True)
class Compare(Expression):
    """A comparison of two numbers."""

    op: str
    left: Expression
    right: Expression
    bits = 1


@dataclass(frozen=True, slots=True)
class CompareBytes(Expression):
    """A comparison of bytes of any length: varbits."""

    op: str
    left: Expression
    right: Expression
    bits = 1


@dataclass(frozen=True, slots=True)
class SameTruth(Expression):
    """Whether two conditions are equal (`==`) or not (`!=`)."""

    op: str
    left: Expression
    right: Expression
    bits = 1


@dataclass(frozen=True, slots=True)
class InBounds(Expression):
    """Whether an index is inside an array of so many cells."""

    index: Expression
    size: int
    bits = 1


@dataclass(frozen=True, slots=True)
class Logic(Expression):
    """Whether all (`and`) or any (`or`) of some conditions hold."""

    op: str
    parts: tuple[Expression, ...]
    bits = 1


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """Whether a condition does not hold."""

    test: Expression
    bits = 1


@dataclass(frozen=True, slots=True)
class Choice(Expression):
    """A choice between two values; only the chosen value is computed."""

    test: Expression
    yes: Expression
    no: Expression

    @property
    def bits(self) -> int | None:
        """The width of the wider value."""
        return _widest(self.yes.bits, self.no.bits)
