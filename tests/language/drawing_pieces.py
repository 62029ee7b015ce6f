"""Pieces of random expressions: types, operators and literals, with few parentheses."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.language import tree as n
from tests.language.names import Text, Type, show

WIDTHS = (1, 2, 3, 4, 5, 7, 8, 8, 8, 9, 12, 13, 16, 16, 17, 24, 31, 32, 32, 33, 48, 63, 64, 65, 96)
WIDE = (1, 8, 32, 63, 64, 65, 127, 128, 129, 130, 191, 192, 193, 255, 256, 257, 300, 511, 520)
BOOL = n.Plain("bool")
ERROR = n.Plain("error")
# How tight an expression binds; whatever is looser than its place gets parentheses.
LOOSEST, PREFIX, POSTFIX = 1, 12, 13
LEVELS = {
    "||": 2,
    "&&": 3,
    "==": 4,
    "!=": 4,
    "<": 5,
    "<=": 5,
    ">": 5,
    ">=": 5,
    "|": 6,
    "^": 7,
    "&": 8,
    "<<": 9,
    ">>": 9,
    "+": 10,
    "-": 10,
    "++": 10,
    "|+|": 10,
    "|-|": 10,
    "*": 11,
    "/": 11,
    "%": 11,
}


class Pieces:
    """Draws of parts that need no names, and operators between given expressions."""

    def __init__(
        self,
        draw: Random,
        enums: Sequence[n.Enum],
        widths: Sequence[int] = WIDTHS,
        for_p4c: bool = False,
    ) -> None:
        self.draw = draw
        self.enums = enums
        self.widths = widths
        self.for_p4c = for_p4c

    # Types

    def width(self) -> int:
        return self.draw.choice(self.widths)

    def bits(self) -> n.Bits:
        # p4c fuses two casts into a single cast that changes sign and width, and refuses it.
        return n.Bits(self.width(), not self.for_p4c and self.draw.random() < 0.3)

    def type(self) -> Type:
        roll = self.draw.random()
        if roll < 0.8:
            return self.bits()
        return BOOL if roll < 0.9 else self.draw.choice(self.enums)

    # Parts

    def inside(self, text: Text, level: int) -> str:
        """Return source that stands where something of a level is wanted."""
        loose = text.level < level or self.draw.random() < 0.1
        return f"({text.source})" if loose else text.source

    def binary(self, op: str, left: Text, right: Text) -> Text:
        level = LEVELS[op]
        # Operators are left-associative; comparisons are kept apart, they do not chain.
        tight = level + (op in ("==", "!=", "<", "<=", ">", ">="))
        return Text(f"{self.inside(left, tight)} {op} {self.inside(right, level + 1)}", level)

    def prefix(self, op: str, operand: Text) -> Text:
        return Text(f"{op}{self.inside(operand, PREFIX)}", PREFIX)

    def cast(self, type_: n.Type, operand: Text) -> Text:
        return self.prefix(f"({show(type_)}) ", operand)

    def sliced(self, operand: Text, high: int, low: int) -> Text:
        return Text(f"{self.inside(operand, POSTFIX)}[{high}:{low}]", POSTFIX)

    def number(self, width: int) -> int:
        """Return bits, the ends of the range more often than others."""
        largest = (1 << width) - 1
        ends = (0, 1, largest, largest >> 1, (largest >> 1) + 1 & largest, largest - 1 & largest)
        return self.draw.choice((*ends, *(self.draw.getrandbits(width) for _ in range(5))))

    def literal(self, type_: n.Bits) -> Text:
        """Return a number of a type."""
        value = self.number(type_.width)
        if not type_.signed:
            return Text(f"{type_.width}w{self.draw.choice((str, hex))(value)}")
        if value >> type_.width - 1:
            value -= 1 << type_.width
        return self.cast(type_, Text(f"({value})"))

    def turned(self, text: Text, source: n.Bits, target: Type) -> Text | None:
        """Return an expression turned into an expression of another type."""
        if source == target:
            return text
        if target == BOOL:
            return self.binary(self.draw.choice(("==", "!=")), text, self.literal(source))
        if not isinstance(target, n.Bits):
            return None

        # Width and sign do not change in one cast.
        if source.signed != target.signed:
            text = self.cast(n.Bits(source.width, target.signed), text)
        return text if source.width == target.width else self.cast(target, text)
