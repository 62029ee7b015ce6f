"""Source for calculations: checksums, hashes, selector inputs.

The inputs are a concatenation of fields, constants and payload, from which fields of invalid
headers are left out. When all headers are valid, which is the common case, one `struct` call builds
the bytes; a checksum needs no bytes at all, because shifting by a multiple of 16 does not change a
number modulo 2^16 - 1.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from emulation.softswitch.codegen import names
from emulation.softswitch.codegen.constants import Constants
from emulation.softswitch.codegen.expressions import Value, bits_of_field
from emulation.softswitch.codegen.layout import CODES, concatenate
from emulation.softswitch.codegen.program import VALID, Field, Json, Program, hex_int
from emulation.softswitch.errors import PipelineError
from emulation.softswitch.hashes import algorithm

PAYLOAD = f"{names.DATA}[{names.POSITION}:]"


@dataclass(frozen=True, slots=True)
class Part:
    """One input: source, width in bits (0: bytes) and the validity it depends on."""

    source: str
    bits: int
    guard: str | None


def parts_of(program: Program, inputs: Sequence[Json], known: str | None = None) -> list[Part]:
    """Return the inputs of a calculation.

    `known` is a validity that holds wherever it is computed.
    """
    parts = [part for item in inputs for part in _parts(program, item)]
    return [replace(part, guard=None) if part.guard == known else part for part in parts]


def _parts(program: Program, item: Json) -> Iterator[Part]:
    match item["type"]:
        case "payload":
            yield Part(PAYLOAD, 0, None)
        case "hexstr":
            # A constant without width could not be placed among the other bits.
            bits = int(item["bitwidth"])
            yield Part(str(hex_int(item["value"], "calculation") & (1 << bits) - 1), bits, None)
        case "header":
            header = program.header(item["value"])
            yield from (_field_part(program, field) for field in header.fields)
        case "field" if item["value"][1] == VALID:
            yield Part(program.header(item["value"][0]).valid, 1, None)
        case "field":
            yield _field_part(program, program.field(*item["value"]))
        case other:
            raise PipelineError(f"unknown calculation input {other!r}")


def _field_part(program: Program, field: Field) -> Part:
    header = program.headers[field.header]
    # Metadata is always there; BMv2 leaves fields of invalid headers out of a calculation.
    guard = None if header.is_metadata else header.valid
    return Part(bits_of_field(field), 0 if field.is_varbit else field.bits, guard)


def hash_value(constants: Constants, name: str, parts: Sequence[Part]) -> Value:
    """Return the source of the hash `name` of the parts."""
    function, bits = algorithm(name)
    # RFC 1071: the sum of 16-bit words may be formed in any order and folded once at the end, so
    # that the fields are added where they stand.
    if name in ("csum16", "cksum16") and _keeps_alignment(parts):
        return Value(f"{names.FOLD}({_sum(parts)})", bits)

    call = constants.add(function)
    # The general form: what is present, bit by bit. It is correct for any inputs, and slow.
    listed = " ".join(f"({part.guard or 1}, {part.source}, {part.bits})," for part in parts)
    slow = f"{call}({names.JOIN_BITS}(({listed})))"
    if not parts or any(part.bits == 0 for part in parts):
        return Value(slow, bits)

    # Python evaluates only one side of the condition: the slow form is there for packets without
    # one of the headers.
    fast = f"{call}({_packed(constants, parts)})"
    guards = sorted({part.guard for part in parts if part.guard})
    return Value(f"({fast} if {' and '.join(guards)} else {slow})" if guards else fast, bits)


def _keeps_alignment(parts: Sequence[Part]) -> bool:
    """Whether every run of one header is whole words, so that leaving it out moves nothing else."""
    runs = [list(run) for _, run in groupby(parts, key=lambda part: part.guard)]
    # A header left out that is no whole number of words would shift what follows, and so change its
    # place in the words.
    return all(sum(part.bits for part in run) % 16 == 0 for run in runs[:-1]) and all(
        part.bits or part is parts[-1] for part in parts
    )


def _sum(parts: Sequence[Part]) -> str:
    terms = []
    end = 0
    for guard, run in groupby(parts, key=lambda part: part.guard):
        shifted = []
        for part in run:
            # A field weighs 2^k, where k is how far its end lies before the end of its word; whole
            # words of distance make no difference modulo 2^16 - 1.
            end += part.bits
            shifted.append(_words(part, -end % 16))

        terms.append(f"({' + '.join(shifted)} if {guard} else 0)" if guard else " + ".join(shifted))

    return " + ".join(terms) or "0"


def _words(part: Part, shift: int) -> str:
    if not part.bits:
        return f"{names.WORDS}({part.source})"

    return f"({part.source} << {shift})" if shift else part.source


def _packed(constants: Constants, parts: Sequence[Part]) -> str:
    """Return the bytes of parts that are all present."""
    fmt = ">"
    arguments = []
    for group in _byte_groups(parts):
        bits = sum(width for _, width in group)
        source = concatenate([*group, ("0", -bits % 8)] if bits % 8 else group)
        # The last group may end within a byte, which zeros fill, as BMv2 does.
        size = -(-bits // 8)
        fmt += CODES.get(size, f"{size}s")
        arguments.append(source if size in CODES else f"({source}).to_bytes({size}, 'big')")

    return f"{constants.add(struct.Struct(fmt).pack)}({', '.join(arguments)})"


def _byte_groups(parts: Sequence[Part]) -> Iterator[list[tuple[str, int]]]:
    group: list[tuple[str, int]] = []
    for part in parts:
        group.append((part.source, part.bits))
        if sum(bits for _, bits in group) % 8 == 0:
            yield group
            group = []

    if group:
        yield group
