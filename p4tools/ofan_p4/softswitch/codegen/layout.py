"""The way of a header's fields between bytes and variables.

Fields that the program never touches stay bytes: adjacent ones form one opaque chunk that is copied
from packet to packet. The rest is read and written by one `struct` call per header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ofan_p4.softswitch.codegen import names
from ofan_p4.softswitch.codegen.nodes import (
    Binary,
    Bytes,
    Expression,
    Joined,
    Local,
    Number,
    Shift,
    Temporary,
    Variable,
    Zeros,
)
from ofan_p4.softswitch.codegen.packet_nodes import FromBytes, ToBytes
from ofan_p4.softswitch.codegen.program import Field, Header
from ofan_p4.softswitch.codegen.statements import Assign, Statement

# Sizes that `struct` reads as one integer; others go through bytes.
CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole bytes: opaque, one varbit, or an integer made of fields, most significant first."""

    fields: tuple[Field, ...]
    size: int
    is_opaque: bool

    @property
    def is_varbit(self) -> bool:
        """Whether the chunk is the header's variable-length field."""
        return self.fields[0].is_varbit

    @property
    def is_bytes(self) -> bool:
        """Whether the chunk is kept as bytes."""
        return self.is_opaque or self.is_varbit

    @property
    def var(self) -> Local | Bytes:
        """The variable of an opaque chunk or varbit."""
        first = self.fields[0]
        if first.is_varbit:
            return first.var

        return Bytes(names.opaque(first.header, first.index), self.size)

    @property
    def code(self) -> str:
        """The struct code that carries the chunk."""
        return f"{self.size}s" if self.is_opaque else CODES.get(self.size, f"{self.size}s")

    def variables(self) -> list[Local | Bytes]:
        """Return the variables that hold the chunk."""
        return [self.var] if self.is_bytes else [field.var for field in self.fields]

    def zeros(self) -> list[Expression]:
        """Return the values of the variables of a header just made valid."""
        if self.is_varbit:
            return [Zeros(0)]

        return [Zeros(self.size)] if self.is_opaque else [Number(0)] * len(self.fields)

    def packed(self) -> Expression:
        """Return the value that `struct` packs."""
        if self.is_bytes:
            return self.var

        # A signed field is kept as the number it means; on the wire it is two's complement.
        value = concatenate([(unsigned(field), field.bits) for field in self.fields])
        return value if self.size in CODES else ToBytes(value, self.size)

    def unpacked(self, source: Variable) -> list[Statement]:
        """Return the code that splits `source`, the integer that `struct` has read, into fields."""
        # `struct` has stored these already.
        if self.is_bytes or self.is_plain:
            return []

        assert isinstance(source, Temporary)
        is_number = self.size in CODES
        code: list[Statement] = [] if is_number else [Assign(source, FromBytes(source, self.size))]
        low = self.size * 8
        for field in self.fields:
            low -= field.bits
            part = slice_bits(source, low, field.bits, self.size * 8)
            code.append(Assign(field.var, signed(field, part)))

        return code

    @property
    def is_plain(self) -> bool:
        """Whether `struct` yields the only field itself."""
        return self.size in CODES and len(self.fields) == 1 and not self.fields[0].is_signed


def chunks(header: Header, is_live: Callable[[Field], bool]) -> tuple[Chunk, ...]:
    """Split a header into chunks.

    A group of fields with a live one becomes an integer, the others opaque bytes.
    """
    out: list[Chunk] = []
    for group in _byte_groups(header.fields):
        size = sum(field.bits for field in group) // 8
        opaque = not any(field.is_varbit or is_live(field) for field in group)
        # Neighbouring fields that are never read are copied together, as one field.
        if opaque and out and out[-1].is_opaque:
            last = out.pop()
            out.append(Chunk(last.fields + group, last.size + size, is_opaque=True))
        else:
            out.append(Chunk(group, size, opaque))

    return tuple(out)


def _byte_groups(fields: Sequence[Field]) -> Iterator[tuple[Field, ...]]:
    group: tuple[Field, ...] = ()
    for field in fields:
        if field.is_varbit:
            yield (field,)
            continue

        group += (field,)
        # A group ends with the first field that ends on a byte: smaller integers are not
        # addressable.
        if sum(member.bits for member in group) % 8 == 0:
            yield group
            group = ()

    if group:
        yield group


def pack_format(parts: Sequence[Chunk]) -> str:
    """Return the struct format that writes the chunks."""
    return ">" + "".join(chunk.code for chunk in parts)


def unpack_format(parts: Sequence[Chunk], keep_opaque: bool) -> str:
    """Return the struct format that reads the chunks.

    Without `keep_opaque` their bytes are skipped.
    """
    codes = [
        f"{chunk.size}x" if chunk.is_opaque and not keep_opaque else chunk.code for chunk in parts
    ]
    # Padding at the end would make `struct` ask for bytes that no field uses.
    while codes and codes[-1].endswith("x"):
        codes.pop()

    return ">" + "".join(codes)


def concatenate(parts: Sequence[tuple[Expression, int]]) -> Expression:
    """Return the integer made of the bits of (expression, width) parts, most significant first."""
    if not parts:
        return Number(0)

    return parts[0][0] if len(parts) == 1 else Joined(tuple(parts))


def slice_bits(source: Expression, low: int, bits: int, total: int) -> Expression:
    """Return `bits` bits of an unsigned integer of `total` bits, above its `low` lowest."""
    shifted = Shift(">>", source, low) if low else source
    # The topmost bits need no mask: nothing is above them.
    return shifted if low + bits == total else masked(shifted, bits)


def masked(value: Expression, bits: int) -> Expression:
    """Return the low bits of a value."""
    return Binary("&", value, Number((1 << bits) - 1))


def signed(field: Field, source: Expression) -> Expression:
    """Return the value that a field takes from its bits."""
    if not field.is_signed:
        return source

    # Flip the sign bit and subtract its weight: two's complement without a condition.
    weight = Number(1 << field.bits - 1)
    return Binary("-", Binary("^", source, weight), weight)


def unsigned(field: Field) -> Expression:
    """Return the bits of a field."""
    return masked(field.var, field.bits) if field.is_signed else field.var
