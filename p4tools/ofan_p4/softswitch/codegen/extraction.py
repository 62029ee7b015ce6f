"""Parser operations on a packet's bytes: extracting headers, looking ahead, moving on.

Whatever a packet is too short for is an error, which breaks out of the parser.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from ofan_p4.softswitch.base.errors import PipelineError
from ofan_p4.softswitch.codegen.arguments import SIZE
from ofan_p4.softswitch.codegen.constants import Constants
from ofan_p4.softswitch.codegen.expressions import ONE, ZERO, Expressions, constant_below, inner
from ofan_p4.softswitch.codegen.flow import Code, arm_of, when
from ofan_p4.softswitch.codegen.headers import HeaderCode
from ofan_p4.softswitch.codegen.layout import Chunk, slice_bits, unpack_format
from ofan_p4.softswitch.codegen.liveness import Liveness
from ofan_p4.softswitch.codegen.nodes import (
    Binary,
    Compare,
    Expression,
    Logic,
    Number,
    Sum,
    Truth,
    Variable,
)
from ofan_p4.softswitch.codegen.packet_nodes import FrameByte, FrameBytes, FromBytes
from ofan_p4.softswitch.codegen.program import Header, Json, Program, Stack, natural
from ofan_p4.softswitch.codegen.statements import Assign, Break, Change, Halve, Unpack
from ofan_p4.softswitch.codegen.tracing import Label, Tracing
from ofan_p4.softswitch.codegen.variables import PARSER_ERROR, POSITION, WIDTH, packed

# The numbers of core.p4 in its order, for a JSON that does not list its errors.
CORE_ERRORS = {
    "NoError": 0,
    "PacketTooShort": 1,
    "StackOutOfBounds": 3,
    "HeaderTooShort": 4,
    "ParserInvalidArgument": 6,
}
_IS_NEGATIVE = Compare("<", WIDTH, ZERO)


@dataclass(slots=True)
class Cursor:
    """Where the next byte is: `at` bytes from the start, or, where packets differ, at `o`."""

    at: int | None

    def plus(self, size: int) -> Expression:
        """Return the offset `size` bytes further on."""
        if self.at is not None:
            return Number(self.at + size)

        return Binary("+", POSITION, Number(size)) if size else POSITION

    def moved(self, size: int) -> Code:
        """Consume a known number of bytes."""
        if self.at is None:
            return [Change("+", POSITION, Number(size))] if size else []

        self.at += size
        return []

    def lost(self) -> Code:
        """Return the code that makes `o` hold the position from here on."""
        code = self.stored()
        self.at = None
        return code

    def stored(self) -> Code:
        """Return the statement that stores the position in `o`, for code that leaves here."""
        return [] if self.at is None else [Assign(POSITION, Number(self.at))]


class ExtractionCode:
    """Translator of a parser's operations on the bytes of a packet."""

    def __init__(
        self,
        program: Program,
        expressions: Expressions,
        constants: Constants,
        liveness: Liveness,
        tracing: Tracing,
    ) -> None:
        self._program = program
        self._expressions = expressions
        self._constants = constants
        self._liveness = liveness
        self._tracing = tracing
        self._headers = HeaderCode(program, liveness)

    def extract(self, target: Json, length: Json | None, cursor: Cursor) -> Code:
        """Return the extraction of a header; `length`, in bits, is that of its varbit."""
        value = target["value"]
        match target["type"]:
            case "regular":
                return self._extract_header(self._program.header(value), length, cursor)
            case "stack":
                stack = self._expressions.stack(value)
                headers = [self._program.headers[i] for i in stack.elements]
            case "union_stack":
                stack = self._expressions.stack(value[0])
                headers = self.members(stack, value[1])
            case unknown:
                raise PipelineError(f"cannot extract into {unknown!r}")

        return self._extract_next(stack, headers, length, cursor)

    def _extract_next(
        self, stack: Stack, headers: Sequence[Header], length: Json, cursor: Cursor
    ) -> Code:
        arms = []
        after = cursor
        for header in headers:
            # Which element comes next is known at run time only, but all are of one type and so of
            # one length: any arm gives the cursor's later position.
            after = Cursor(cursor.at)
            body = self._extract_header(header, length, after)
            arms.append(body)

        beyond = self.fail(self.error("StackOutOfBounds"), cursor)
        cursor.at = after.at
        return [arm_of(stack.next, arms, beyond), Change("+", stack.next, ONE)]

    def _extract_header(self, header: Header, length: Json | None, cursor: Cursor) -> Code:
        if header.is_variable:
            return self._extract_variable(header, length, cursor)

        code = self._need(cursor.plus(header.bytes), cursor)
        # Now, because `moved` shifts the cursor: a trace has the position where the header began.
        traced = self._tracing.extracted(header, cursor.plus(0))
        plan = self._liveness.plan(header)

        # One slice carries a header that nothing modifies to the deparser; only the fields that
        # somebody reads are taken out of it besides.
        if self._liveness.is_pristine(header):
            frame_bytes = FrameBytes(cursor.plus(0), cursor.plus(header.bytes))
            code.append(Assign(header.raw, frame_bytes))
            code += self._unpack(plan, cursor.plus(0), keep_opaque=False)
        else:
            code += self._unpack(plan, cursor.plus(0), keep_opaque=True)

        return [*code, *self._headers.set_valid(header), *traced, *cursor.moved(header.bytes)]

    def _extract_variable(self, header: Header, length: Json | None, cursor: Cursor) -> Code:
        if length is None:
            raise PipelineError(f"header {header.name!r} has a varbit; extract it with a length")

        size = Sum((Number(header.bytes), WIDTH))
        code = [
            *cursor.lost(),
            Assign(WIDTH, self._expressions.data(inner(length))),
            when(
                Binary("&", WIDTH, Number(7)),
                self.fail(self.error("ParserInvalidArgument"), cursor),
            ),
            Halve(WIDTH, 3),
            when(
                Logic("or", (_IS_NEGATIVE, Compare("<", SIZE, Sum((POSITION, *size.terms))))),
                self.fail(self.error("PacketTooShort"), cursor),
            ),
        ]

        # core.p4: HeaderTooShort is for a varbit longer than its declaration.
        if header.max_bytes:
            is_long = Compare(">", size, Number(header.max_bytes))
            code.append(when(is_long, self.fail(self.error("HeaderTooShort"), cursor)))

        plan = self._liveness.plan(header)
        # Three pieces: up to the varbit, the varbit, and the rest at an offset known at run time.
        index = next((i for i, chunk in enumerate(plan) if chunk.is_varbit), None)
        if index is not None:
            before = sum(chunk.size for chunk in plan[:index])
            start = Sum((POSITION, Number(before)))
            stop = Sum((*start.terms, WIDTH))
            code += self._unpack(plan[:index], POSITION, keep_opaque=True)
            code.append(Assign(plan[index].var, FrameBytes(start, stop)))
            code += self._unpack(plan[index + 1 :], stop, keep_opaque=True)

        traced = self._tracing.extracted(header, POSITION)
        moved = Change("+", POSITION, size)
        return [*code, *self._headers.set_valid(header), *traced, moved]

    def _unpack(self, plan: Sequence[Chunk], offset: Expression, keep_opaque: bool) -> Code:
        """Return the statements that read the chunks found at `offset`."""
        # One call of `struct` reads all fields; those that are never read are skipped as padding.
        kept = [chunk for chunk in plan if keep_opaque or not chunk.is_opaque]
        if not kept:
            return []

        targets: tuple[Variable, ...] = tuple(
            chunk.var if chunk.is_bytes else chunk.fields[0].var if chunk.is_plain else packed(i)
            for i, chunk in enumerate(kept)
        )

        fmt = unpack_format(plan, keep_opaque)
        unpack = self._constants.add(struct.Struct(fmt).unpack_from)
        code: Code = [Unpack(unpack, fmt, targets, offset)]
        for target, chunk in zip(targets, kept, strict=True):
            code += chunk.unpacked(target)

        return code

    def advance(self, bits: Expression, cursor: Cursor) -> Code:
        """Return the skipping of so many bits."""
        invalid = self.error("ParserInvalidArgument")
        constant = constant_below(bits)
        if constant is not None:
            # Frames are whole bytes: anything else is core.p4's ParserInvalidArgument.
            if constant % 8:
                return [when(Truth(value=True), self.fail(invalid, cursor))]

            return [*self._need(cursor.plus(constant // 8), cursor), *cursor.moved(constant // 8)]

        lost = cursor.lost()
        is_part = Logic("or", (Binary("&", WIDTH, Number(7)), _IS_NEGATIVE))
        return [
            *lost,
            Assign(WIDTH, bits),
            when(is_part, self.fail(invalid, cursor)),
            Halve(WIDTH, 3),
            *self._need(Binary("+", POSITION, WIDTH), cursor),
            Change("+", POSITION, WIDTH),
        ]

    def lookahead(self, bit_range: Json, cursor: Cursor) -> tuple[Code, Expression]:
        """Return the check that the bits are there, and their value."""
        offset = natural(bit_range[0], "the offset of a lookahead")
        bits = natural(bit_range[1], "the width of a lookahead")
        first = offset // 8
        end = (offset + bits + 7) // 8
        size = end - first
        # One byte of a frame is a number already.
        source: Expression = (
            FrameByte(cursor.plus(first))
            if size == 1
            else FromBytes(FrameBytes(cursor.plus(first), cursor.plus(end)), size)
        )

        value = slice_bits(source, end * 8 - offset - bits, bits, size * 8)
        return self._need(cursor.plus(end), cursor), value

    def fail(self, error: Expression, cursor: Cursor) -> Code:
        """Return the end of the parser with an error, given by its number."""
        traced = self._tracing.at("parser_error", "error", [(Label("error", 32), PARSER_ERROR)])
        # The position is that before the failing operation: the bytes that it could not consume are
        # payload.
        return [*cursor.stored(), Assign(PARSER_ERROR, error), *traced, Break()]

    def error(self, name: str) -> Number:
        """Return the number of an error of core.p4."""
        return Number(self._program.errors.get(name, CORE_ERRORS[name]))

    def _need(self, end: Expression, cursor: Cursor) -> Code:
        failed = self.fail(self.error("PacketTooShort"), cursor)
        return [when(Compare("<", SIZE, end), failed)]

    def members(self, stack: Stack, name: str) -> list[Header]:
        """Return the headers of this name in a stack of unions."""
        unions = [self._program.unions[i] for i in stack.elements]
        return [
            self._program.headers[union.members[union.member_names.index(name)]] for union in unions
        ]
