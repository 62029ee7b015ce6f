"""Calculations: checksums, hashes, selector inputs.

The inputs are a concatenation of fields, constants and payload, from which fields of invalid
headers are left out. When all headers are valid, which is the common case, one `struct` call builds
the bytes; a checksum needs no bytes at all, because shifting by a multiple of 16 does not change a
number modulo 2^16 - 1.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeAlias

from ofan_p4.softswitch.base.crcs import PARAMETERS
from ofan_p4.softswitch.base.errors import PipelineError
from ofan_p4.softswitch.base.hashes import algorithm, plain_name
from ofan_p4.softswitch.codegen import names
from ofan_p4.softswitch.codegen.constants import Constants
from ofan_p4.softswitch.codegen.expressions import ONE, ZERO, constant_below
from ofan_p4.softswitch.codegen.headers import all_of
from ofan_p4.softswitch.codegen.layout import CODES, concatenate, masked, unsigned
from ofan_p4.softswitch.codegen.nodes import (
    Call,
    Choice,
    Expression,
    Local,
    Number,
    Remainder,
    Shift,
    Sum,
)
from ofan_p4.softswitch.codegen.packet_nodes import (
    CustomHash,
    Hash,
    JoinedBits,
    JoinedBytes,
    Pack,
    Payload,
    ToBytes,
)
from ofan_p4.softswitch.codegen.program import (
    VALID,
    Calculation,
    Field,
    Json,
    Program,
    hex_int,
)

Source: TypeAlias = Pack | JoinedBits | JoinedBytes


@dataclass(frozen=True, slots=True)
class Part:
    """One input: value, width in bits (0: bytes) and the validity it depends on."""

    value: Expression
    bits: int
    guard: Local | None


def parts_of(program: Program, inputs: Sequence[Json], validity: Local | None = None) -> list[Part]:
    """Return the inputs of a calculation.

    `validity` holds wherever the calculation is computed, so no part needs it as a guard.
    """
    parts = [part for item in inputs for part in _parts(program, item)]
    return [replace(part, guard=None) if part.guard == validity else part for part in parts]


def _parts(program: Program, item: Json) -> Iterator[Part]:
    match item["type"]:
        case "payload":
            yield Part(Payload(), 0, None)
        case "hexstr":
            # A constant without width could not be placed among the other bits.
            bits = int(item["bitwidth"])
            value = hex_int(item["value"], "calculation") & (1 << bits) - 1
            yield Part(Number(value), bits, None)
        case "header":
            header = program.header(item["value"])
            yield from (_field_part(program, field) for field in header.fields)
        case "field" if item["value"][1] == VALID:
            yield Part(program.header(item["value"][0]).valid, 1, None)
        case "field":
            yield _field_part(program, program.field(*item["value"]))
        case kind:
            raise PipelineError(f"unknown calculation input {kind!r}")


def _field_part(program: Program, field: Field) -> Part:
    header = program.headers[field.header]
    # Metadata is always there; BMv2 leaves fields of invalid headers out of a calculation.
    guard = None if header.is_metadata else header.valid
    return Part(unsigned(field), 0 if field.is_varbit else field.bits, guard)


def calculated(
    program: Program, constants: Constants, calculation: Calculation, parts: Sequence[Part]
) -> Expression:
    """Return the hash of a calculation's parts, with parameters where its algorithm has some."""
    crcs = program.custom_crcs()
    if calculation not in crcs:
        return hash_value(constants, calculation.algorithm, parts)

    number = crcs.index(calculation)
    bits, _ = PARAMETERS[calculation.algorithm]
    return _of_bytes(constants, parts, lambda source: CustomHash(number, source, bits))


def hash_value(constants: Constants, name: str, parts: Sequence[Part]) -> Expression:
    """Return the hash `name` of the parts."""
    function, bits = algorithm(name)
    # RFC 1071: the sum of 16-bit words may be formed in any order and folded once at the end, so
    # that the fields are added where they stand.
    if name in ("csum16", "cksum16") and _keeps_alignment(parts):
        return Call(names.FOLD, (_sum(parts),), bits)

    call = constants.add(function)
    plain = plain_name(name)
    return _of_bytes(constants, parts, lambda source: Hash(call, plain, source, bits))


def _of_bytes(
    constants: Constants, parts: Sequence[Part], hashed: Callable[[Source], Expression]
) -> Expression:
    """Return `hashed` of the bytes of the parts."""
    # The general form: present parts, bit by bit. It is correct for any inputs, and slow.
    listed = tuple((part.guard or ONE, part.value, part.bits) for part in parts)
    if any(part.bits == 0 for part in parts):
        return hashed(JoinedBytes(listed))

    slow = hashed(JoinedBits(listed))
    if not parts:
        return slow

    # Only one side of the condition is computed: the slow form is there for packets that lack a
    # header.
    fast = hashed(_packed(constants, parts))
    guards = {part.guard.name: part.guard for part in parts if part.guard}
    ordered = [guards[key] for key in sorted(guards)]
    return Choice(all_of(ordered), fast, slow) if ordered else fast


def modulo(value: Expression, size: Expression) -> Expression:
    """Return `value % size`, where BMv2 takes a size of 0 for 1."""
    constant = constant_below(size)
    if constant is None:
        return Remainder(value, size)

    limit = constant or 1
    if value.bits is not None and 1 << value.bits <= limit:
        return value
    # A power of two: the low bits are the remainder.
    if limit & limit - 1 == 0:
        return masked(value, limit.bit_length() - 1)

    return Remainder(value, Number(limit))


def _keeps_alignment(parts: Sequence[Part]) -> bool:
    """Whether every run of one header is whole words, so that leaving it out moves nothing else."""
    runs = [list(run) for _, run in groupby(parts, key=lambda part: part.guard)]
    # A header left out that is no whole number of words would shift the parts behind it, and so
    # change their place in the words.
    return all(sum(part.bits for part in run) % 16 == 0 for run in runs[:-1]) and all(
        part.bits or part is parts[-1] for part in parts
    )


def _sum(parts: Sequence[Part]) -> Expression:
    terms: list[Expression] = []
    end = 0
    for guard, run in groupby(parts, key=lambda part: part.guard):
        shifted = []
        for part in run:
            # A field weighs 2^k, where k is how far its end lies before the end of its word; whole
            # words of distance make no difference modulo 2^16 - 1.
            end += part.bits
            shifted.append(_words(part, -end % 16))

        terms += [Choice(guard, Sum(tuple(shifted)), ZERO)] if guard else shifted

    return Sum(tuple(terms)) if terms else ZERO


def _words(part: Part, shift: int) -> Expression:
    if not part.bits:
        return Call(names.WORDS, (part.value,))

    return Shift("<<", part.value, shift) if shift else part.value


def _packed(constants: Constants, parts: Sequence[Part]) -> Pack:
    """Return the bytes of parts that are all present."""
    fmt = ">"
    arguments: list[Expression] = []
    for group in _byte_groups(parts):
        bits = sum(width for _, width in group)
        value = concatenate([*group, (ZERO, -bits % 8)] if bits % 8 else group)
        # The last group may end within a byte, which zeros fill, as BMv2 does.
        size = -(-bits // 8)
        fmt += CODES.get(size, f"{size}s")
        arguments.append(value if size in CODES else ToBytes(value, size))

    return Pack(constants.add(struct.Struct(fmt).pack), fmt, tuple(arguments))


def _byte_groups(parts: Sequence[Part]) -> Iterator[list[tuple[Expression, int]]]:
    group: list[tuple[Expression, int]] = []
    for part in parts:
        group.append((part.value, part.bits))
        if sum(bits for _, bits in group) % 8 == 0:
            yield group
            group = []

    if group:
        yield group
