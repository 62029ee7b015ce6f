"""The parser: from packet bytes to field variables.

Where every path to a state has consumed the same number of bytes, offsets are constants in the
generated code; otherwise the variable `o` holds the position. An error breaks out of the loop that
encloses the parser, with its code in `perr` and the position before the failing operation in `o`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from emulation.softswitch.codegen import names
from emulation.softswitch.codegen.constants import Constants
from emulation.softswitch.codegen.expressions import (
    Expressions,
    HeaderRef,
    Value,
    bits_of_field,
    inner,
)
from emulation.softswitch.codegen.flow import Block, Branch, Lines, emit, indent
from emulation.softswitch.codegen.headers import HeaderCode
from emulation.softswitch.codegen.layout import Chunk, slice_bits, unpack_format
from emulation.softswitch.codegen.liveness import Liveness
from emulation.softswitch.codegen.primitives import Primitives
from emulation.softswitch.codegen.program import (
    Header,
    Json,
    ParseState,
    Program,
    Stack,
    hex_int,
    natural,
    where_of,
)
from emulation.softswitch.codegen.tracing import Label, Tracing
from emulation.softswitch.errors import PipelineError

# The numbers of core.p4 in its order, for a JSON that does not list its errors.
CORE_ERRORS = {
    "NoError": 0,
    "PacketTooShort": 1,
    "StackOutOfBounds": 3,
    "HeaderTooShort": 4,
    "ParserInvalidArgument": 6,
}


@dataclass(slots=True)
class Cursor:
    """Where the next byte is: `at` bytes from the start, or, where packets differ, at `o`."""

    at: int | None

    def plus(self, size: int) -> str:
        """Return the offset `size` bytes further on."""
        if self.at is not None:
            return str(self.at + size)

        return f"{names.POSITION} + {size}" if size else names.POSITION

    def moved(self, size: int) -> Lines:
        """Consume a known number of bytes."""
        if self.at is None:
            return [f"{names.POSITION} += {size}"] if size else []

        self.at += size
        return []

    def lost(self) -> Lines:
        """Return what makes `o` hold the position from here on."""
        if self.at is None:
            return []

        lines = [f"{names.POSITION} = {self.at}"]
        self.at = None
        return lines

    def stored(self) -> Lines:
        """Return what makes `o` hold the position for whoever leaves here."""
        return [] if self.at is None else [f"{names.POSITION} = {self.at}"]


class ParserCode:
    """Generates the parser of one program."""

    def __init__(
        self,
        program: Program,
        constants: Constants,
        liveness: Liveness,
        primitives: Primitives,
        tracing: Tracing,
    ) -> None:
        self._program = program
        self._tracing = tracing
        self._constants = constants
        self._liveness = liveness
        self._primitives = primitives
        self._expressions = Expressions(program)
        self._headers = HeaderCode(program, liveness)
        self._value_sets = {value_set.name: value_set.id for value_set in program.value_sets}

    def lines(self) -> Lines:
        """Return the parser as statements that end with `o` after the last consumed byte."""
        states = self._program.parser.states
        offsets = self._offsets()
        graph = {name: self._block(states[name], offsets) for name in offsets}

        return [
            f"{names.POSITION} = 0",
            # p4c counts from the program's own errors on where these come before core.p4's.
            f"{names.PARSER_ERROR} = {self._error('NoError')}",
            *emit(graph, self._program.parser.start),
        ]

    def _offsets(self) -> dict[str, int | None]:
        """Return every reachable state's offset, None where it depends on the path."""
        parser = self._program.parser
        offsets: dict[str, int | None] = {parser.start: 0}
        # A state goes from unknown to one offset to None, never back: every state is visited at
        # most twice, cycles included.
        todo = [parser.start]

        while todo:
            state = parser.states[todo.pop()]
            end = self._end(state, offsets[state.name])
            for name in (transition.get("next_state") for transition in state.transitions):
                if name is None or offsets.get(name, -1) in (None, end):
                    continue

                offsets[name] = None if name in offsets else end
                todo.append(name)

        return offsets

    def _end(self, state: ParseState, at: int | None) -> int | None:
        cursor = Cursor(at)
        # Only where the cursor ends is of interest. The statements are dropped; the constants they
        # have named stay, which is why the first K of a program is rarely K0.
        for op in state.ops:
            self._op(op, cursor)

        return cursor.at

    def _block(self, state: ParseState, offsets: Mapping[str, int | None]) -> Block:
        cursor = Cursor(offsets[state.name])
        self._tracing.where = state.where
        entered = self._tracing.at("state", state.name)
        lines = [line for op in state.ops for line in self._op(op, cursor)]
        more, keys, widths = self._key(state, cursor)
        branches = [
            self._branch(item, keys, widths, cursor=cursor, offsets=offsets)
            for item in state.transitions
        ]

        # Where no transition matches, the parser ends and the pipeline sees what is parsed so far.
        if not branches or branches[-1].condition is not None:
            branches.append(Branch(None, None, tuple(cursor.stored())))

        return Block((*entered, *lines, *more), tuple(branches))

    def _branch(
        self,
        item: Json,
        keys: Sequence[str],
        widths: Sequence[int],
        cursor: Cursor,
        offsets: Mapping[str, int | None],
    ) -> Branch:
        target = item.get("next_state")
        # A state whose offset is constant never looks at `o`: it is stored on the ways that need
        # it.
        position = cursor.stored() if target is None or offsets[target] is None else []
        values = [(Label("", bits), key) for key, bits in zip(keys, widths, strict=True)]
        chosen = self._tracing.at("select", target or "accept", values)

        return Branch(self._condition(item, keys, widths), target, (*chosen, *position))

    def _condition(self, item: Json, keys: Sequence[str], widths: Sequence[int]) -> str | None:
        kind = item.get("type", "hexstr")
        mask = item.get("mask")
        if kind == "default" or item.get("value") == "default":
            return None

        masks = (
            [None] * len(widths)
            if mask is None
            else _split(hex_int(mask, "transition mask"), widths)
        )

        if kind == "parse_vset":
            if item["value"] not in self._value_sets:
                raise PipelineError(f"no value set is called {item['value']!r}")

            masked = [
                key if bits is None else f"{key} & {bits}"
                for key, bits in zip(keys, masks, strict=True)
            ]

            members = names.value_set(self._value_sets[item["value"]])
            return f"{members}.matches(({', '.join(masked)},), {tuple(masks)})"

        values = _split(hex_int(item["value"], "transition value"), widths)
        tests = [
            _test(key, value, bits, width)
            for key, value, bits, width in zip(keys, values, masks, widths, strict=True)
        ]

        return " and ".join(test for test in tests if test) or "True"

    def _key(self, state: ParseState, cursor: Cursor) -> tuple[Lines, list[str], list[int]]:
        """Return what computes the transition key, its parts and their widths in bits."""
        lines: Lines = []
        keys = []
        widths = []

        for i, item in enumerate(state.key):
            if item["type"] == "lookahead":
                check, value = self._lookahead(item["value"], cursor)
                # Read once, before the first comparison: a select may compare it with many values.
                lines += [*check, f"{names.peeked(i)} = {value.source}"]
                keys.append(names.peeked(i))
                widths.append(item["value"][1])
            else:
                source, bits = self._key_field(item)
                keys.append(source)
                widths.append(bits)

        return lines, keys, widths

    def _key_field(self, item: Json) -> tuple[str, int]:
        value = item["value"]
        match item["type"]:
            case "field" if value[1] == "$valid$":
                return self._program.header(value[0]).valid, 1
            case "field":
                field = self._program.field(*value)
                return bits_of_field(field), field.bits
            case "stack_field":
                headers = [
                    self._program.headers[i] for i in self._expressions.stack(value[0]).elements
                ]
                return self._last(value[0], headers, value[1])
            case "union_stack_field":
                return self._last(
                    value[0], self._members(self._expressions.stack(value[0]), value[1]), value[2]
                )

        raise PipelineError(f"unknown transition key type {item['type']!r}")

    def _last(self, stack: str, headers: Sequence[Header], name: str) -> tuple[str, int]:
        fields = [self._program.field(header.name, name) for header in headers]
        ref = HeaderRef(tuple(headers), f"{self._expressions.stack(stack).next} - 1")
        return ref.pick([bits_of_field(field) for field in fields]), fields[0].bits

    def _members(self, stack: Stack, name: str) -> list[Header]:
        unions = [self._program.unions[i] for i in stack.elements]
        return [
            self._program.headers[union.members[union.member_names.index(name)]] for union in unions
        ]

    def _op(self, op: Json, cursor: Cursor) -> Lines:
        parameters = op["parameters"]
        self._tracing.where = where_of(op) or self._tracing.where
        match op["op"]:
            case "extract":
                return self._extract(parameters[0], None, cursor)
            case "extract_VL":
                return self._extract(parameters[0], parameters[1], cursor)
            case "set":
                return self._set(parameters, cursor)
            case "verify":
                failed = self._fail(self._expressions.data(parameters[1]).source, cursor)
                return [f"if not {self._expressions.boolean(parameters[0])}:", *indent(failed)]
            case "shift":
                return self._advance(Value(str(int(parameters[0]) * 8), None), cursor)
            case "advance":
                return self._advance(self._expressions.data(parameters[0]), cursor)
            case "primitive":
                return self._primitives.primitive(parameters[0])

        raise PipelineError(f"unknown parser operation {op['op']!r}")

    def _fail(self, error: str, cursor: Cursor) -> Lines:
        told = self._tracing.at("parser_error", "error", [(Label("error", 32), names.PARSER_ERROR)])
        # The position is that before the failing operation: what it could not consume is payload.
        return [*cursor.stored(), f"{names.PARSER_ERROR} = {error}", *told, "break"]

    def _error(self, name: str) -> str:
        return str(self._program.errors.get(name, CORE_ERRORS[name]))

    def _need(self, end: str, cursor: Cursor) -> Lines:
        return [
            f"if {names.SIZE} < {end}:",
            *indent(self._fail(self._error("PacketTooShort"), cursor)),
        ]

    def _set(self, parameters: Json, cursor: Cursor) -> Lines:
        target, source = parameters
        if source["type"] != "lookahead":
            return self._primitives.store(target, self._expressions.data(source))

        check, value = self._lookahead(source["value"], cursor)
        return [*check, *self._primitives.store(target, value)]

    def _lookahead(self, place: Json, cursor: Cursor) -> tuple[Lines, Value]:
        offset = natural(place[0], "the offset of a lookahead")
        bits = natural(place[1], "the width of a lookahead")
        first = offset // 8
        end = (offset + bits + 7) // 8
        source = f"int.from_bytes({names.DATA}[{cursor.plus(first)}:{cursor.plus(end)}], 'big')"

        if end == first + 1:
            # One byte of a frame is a number already.
            source = f"{names.DATA}[{cursor.plus(first)}]"

        value = slice_bits(source, end * 8 - offset - bits, bits, (end - first) * 8)
        return self._need(cursor.plus(end), cursor), Value(f"({value})", bits)

    def _advance(self, bits: Value, cursor: Cursor) -> Lines:
        invalid = self._error("ParserInvalidArgument")
        if bits.source.isdigit():
            # Frames are whole bytes: anything else is core.p4's ParserInvalidArgument.
            if int(bits.source) % 8:
                return ["if True:", *indent(self._fail(invalid, cursor))]

            size = int(bits.source) // 8
            return [*self._need(cursor.plus(size), cursor), *cursor.moved(size)]

        lines = [
            *cursor.lost(),
            f"{names.WIDTH} = {bits.source}",
            f"if {names.WIDTH} & 7 or {names.WIDTH} < 0:",
            *indent(self._fail(invalid, cursor)),
        ]

        return [
            *lines,
            f"{names.WIDTH} >>= 3",
            *self._need(f"{names.POSITION} + {names.WIDTH}", cursor),
            f"{names.POSITION} += {names.WIDTH}",
        ]

    def _extract(self, target: Json, length: Json | None, cursor: Cursor) -> Lines:
        value = target["value"]
        match target["type"]:
            case "regular":
                return self._extract_header(self._program.header(value), length, cursor)
            case "stack":
                stack = self._expressions.stack(value)
                headers = [self._program.headers[i] for i in stack.elements]
            case "union_stack":
                stack = self._expressions.stack(value[0])
                headers = self._members(stack, value[1])
            case other:
                raise PipelineError(f"cannot extract into {other!r}")

        return self._extract_next(stack, headers, length, cursor)

    def _extract_next(
        self, stack: Stack, headers: Sequence[Header], length: Json, cursor: Cursor
    ) -> Lines:
        lines: Lines = []
        after = cursor
        for i, header in enumerate(headers):
            # Which element comes next is known at run time only, but all are of one type and so of
            # one length: any arm tells where the cursor is afterwards.
            after = Cursor(cursor.at)
            body = self._extract_header(header, length, after)
            lines += [f"{'elif' if i else 'if'} {stack.next} == {i}:", *indent(body)]

        lines += ["else:", *indent(self._fail(self._error("StackOutOfBounds"), cursor))]
        cursor.at = after.at
        return [*lines, f"{stack.next} += 1"]

    def _extract_header(self, header: Header, length: Json | None, cursor: Cursor) -> Lines:
        if header.is_variable:
            return self._extract_variable(header, length, cursor)

        lines = self._need(cursor.plus(header.bytes), cursor)
        # Now, because `moved` shifts the cursor: a trace says where the header began.
        told = self._tracing.extracted(header, cursor.plus(0))
        plan = self._liveness.plan(header)

        # One slice carries a header that nothing modifies to the deparser; only the fields that
        # somebody reads are taken out of it besides.
        if self._liveness.is_pristine(header):
            lines.append(
                f"{header.raw} = {names.DATA}[{cursor.plus(0)}:{cursor.plus(header.bytes)}]"
            )
            lines += self._unpack(plan, cursor.plus(0), keep_opaque=False)
        else:
            lines += self._unpack(plan, cursor.plus(0), keep_opaque=True)

        return [*lines, *self._headers.set_valid(header), *told, *cursor.moved(header.bytes)]

    def _extract_variable(self, header: Header, length: Json | None, cursor: Cursor) -> Lines:
        if length is None:
            raise PipelineError(f"header {header.name!r} has a varbit; extract it with a length")

        lines = [*cursor.lost(), f"{names.WIDTH} = {self._expressions.data(inner(length)).source}"]
        lines += [
            f"if {names.WIDTH} & 7:",
            *indent(self._fail(self._error("ParserInvalidArgument"), cursor)),
            f"{names.WIDTH} >>= 3",
        ]
        end = f"{names.POSITION} + {header.bytes} + {names.WIDTH}"
        lines += [f"if {names.WIDTH} < 0 or {names.SIZE} < {end}:"]
        lines += indent(self._fail(self._error("PacketTooShort"), cursor))

        # core.p4: HeaderTooShort is for a varbit longer than its declaration.
        if header.max_bytes:
            lines += [f"if {header.bytes} + {names.WIDTH} > {header.max_bytes}:"]
            lines += indent(self._fail(self._error("HeaderTooShort"), cursor))

        plan = self._liveness.plan(header)
        # Three pieces: up to the varbit, the varbit, and what follows at an offset known at run
        # time.
        place = next((i for i, chunk in enumerate(plan) if chunk.is_varbit), None)
        if place is not None:
            before = sum(chunk.size for chunk in plan[:place])
            start = f"{names.POSITION} + {before}"
            stop = f"{start} + {names.WIDTH}"
            lines += self._unpack(plan[:place], names.POSITION, keep_opaque=True)
            lines.append(f"{plan[place].var} = {names.DATA}[{start}:{stop}]")
            lines += self._unpack(plan[place + 1 :], stop, keep_opaque=True)

        told = self._tracing.extracted(header, names.POSITION)
        moved = f"{names.POSITION} += {header.bytes} + {names.WIDTH}"
        return [*lines, *self._headers.set_valid(header), *told, moved]

    def _unpack(self, plan: Sequence[Chunk], offset: str, keep_opaque: bool) -> Lines:
        """Return the statements that read the chunks found at `offset`."""
        # The one call of `struct` skips what nobody wants.
        kept = [chunk for chunk in plan if keep_opaque or not chunk.is_opaque]
        if not kept:
            return []

        targets = [
            chunk.var
            if chunk.is_bytes
            else chunk.fields[0].var
            if chunk.is_plain
            else names.packed(i)
            for i, chunk in enumerate(kept)
        ]

        unpack = self._constants.add(struct.Struct(unpack_format(plan, keep_opaque)).unpack_from)
        lines = [f"{', '.join(targets)}, = {unpack}({names.DATA}, {offset})"]
        for target, chunk in zip(targets, kept, strict=True):
            lines += chunk.unpacked(target)

        return lines


def _split(value: int, widths: Sequence[int]) -> list[int]:
    """Split a transition value, in which every part is padded to whole bytes, into its parts."""
    parts = []
    for width in reversed(widths):
        # As BMv2 builds a transition key: each part on whole bytes, the first most significant.
        padded = -(-width // 8) * 8
        parts.append(value & (1 << padded) - 1)
        value >>= padded

    return parts[::-1]


def _test(key: str, value: int, mask: int | None, width: int) -> str:
    # A full mask is no mask, and an empty one no test.
    full = (1 << width) - 1
    if mask is None or mask & full == full:
        return f"{key} == {value}"

    return f"{key} & {mask} == {value & mask}" if mask else ""
