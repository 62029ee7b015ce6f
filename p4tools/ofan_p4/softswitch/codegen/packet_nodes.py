"""Expressions of a packet and of the switch that it is in: frames, tables, cells, requests."""

from __future__ import annotations

from dataclasses import dataclass

from ofan_p4.softswitch.codegen.nodes import Bytes, Expression, Temporary

JoinedPart = tuple[Expression, Expression, int]
"""Whether it is there, the value and its width."""


@dataclass(frozen=True, slots=True)
class Data(Expression):
    """The frame that came in."""


@dataclass(frozen=True, slots=True)
class Payload(Expression):
    """The frame that came in, from the parser's position on."""


@dataclass(frozen=True, slots=True)
class Length(Expression):
    """The number of bytes of something."""

    of: Data | Bytes


@dataclass(frozen=True, slots=True)
class FrameLength(Expression):
    """The number of bytes of the frame that leaves."""


@dataclass(frozen=True, slots=True)
class FrameByte(Expression):
    """A byte of the frame that came in, as a number."""

    offset: Expression
    bits = 8


@dataclass(frozen=True, slots=True)
class FrameBytes(Expression):
    """Bytes of the frame that came in."""

    start: Expression
    stop: Expression


@dataclass(frozen=True, slots=True)
class FromBytes(Expression):
    """So many bytes as a number, big endian."""

    source: FrameBytes | Temporary
    size: int

    @property
    def bits(self) -> int:
        """Eight for each byte."""
        return 8 * self.size


@dataclass(frozen=True, slots=True)
class ToBytes(Expression):
    """A number as so many bytes, big endian."""

    value: Expression
    size: int


@dataclass(frozen=True, slots=True)
class Pack(Expression):
    """Values as the bytes of a struct; its `pack` is the constant `name`."""

    name: str
    format: str
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class JoinedBits(Expression):
    """The bytes of (present, value, width) parts, one bit after the other."""

    parts: tuple[tuple[Expression, Expression, int], ...]


@dataclass(frozen=True, slots=True)
class JoinedBytes(Expression):
    """Parts as in JoinedBits and bytes of any length (width 0), but for csum16 of whole bytes."""

    parts: tuple[JoinedPart, ...]


@dataclass(frozen=True, slots=True)
class Hash(Expression):
    """A hash of bytes by an algorithm of `hashes`; its function is the constant `name`."""

    name: str
    algorithm: str
    source: Pack | JoinedBits | JoinedBytes
    width: int

    @property
    def bits(self) -> int:
        """Those of the algorithm."""
        return self.width


@dataclass(frozen=True, slots=True)
class CustomHash(Expression):
    """A hash of bytes by the CRC `number` of those with parameters from the control plane."""

    number: int
    source: Pack | JoinedBits | JoinedBytes
    width: int

    @property
    def bits(self) -> int:
        """Those of the CRC."""
        return self.width


@dataclass(frozen=True, slots=True)
class Cell(Expression):
    """A cell of a register array; the index is inside."""

    array: int
    index: Expression
    width: int

    @property
    def bits(self) -> int:
        """Those of its array."""
        return self.width


@dataclass(frozen=True, slots=True)
class Metered(Expression):
    """The colour that a meter of an array gives the packet."""

    array: int
    index: Expression
    bits = 2


@dataclass(frozen=True, slots=True)
class DirectMeter(Expression):
    """The meter of the present entry."""


@dataclass(frozen=True, slots=True)
class DirectlyMetered(Expression):
    """The colour that the meter of the present entry gives the packet."""

    bits = 2


@dataclass(frozen=True, slots=True)
class Draw(Expression):
    """A random number between two others, both included."""

    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class InSet(Expression):
    """Whether a key, each part under its mask, is in a parser value set."""

    number: int
    keys: tuple[Expression, ...]
    masks: tuple[int | None, ...]
    bits = 1


@dataclass(frozen=True, slots=True)
class Entry(Expression):
    """The entry that a lookup found."""


@dataclass(frozen=True, slots=True)
class EntryAction(Expression):
    """The number of its action."""


@dataclass(frozen=True, slots=True)
class IsNotDefault(Expression):
    """Whether it is another than its table's default entry (in traced code)."""

    table: int
    bits = 1


@dataclass(frozen=True, slots=True)
class Packets(Expression):
    """The packets that a counter's cell has counted (in traced code)."""


@dataclass(frozen=True, slots=True)
class Resumed(Expression):
    """A value that a packet brings along when it comes round again."""


@dataclass(frozen=True, slots=True)
class ResumedType(Expression):
    """The instance type of a packet that comes round again."""


@dataclass(frozen=True, slots=True)
class ResumedList(Expression):
    """The number of the field list that it brings along."""


@dataclass(frozen=True, slots=True)
class Asked(Expression):
    """A part of a packet's request: the request; its only number; or a number of its two."""

    request: str
    part: int | None = None


@dataclass(frozen=True, slots=True)
class Present(Expression):
    """Whether there is such a thing."""

    what: Entry | Resumed | Asked | DirectMeter
    bits = 1
