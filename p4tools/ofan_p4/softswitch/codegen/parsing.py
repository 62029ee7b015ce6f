"""The parser: from packet bytes to field variables.

Where every path to a state has consumed the same number of bytes, offsets are constants in the
generated code; otherwise the variable `o` holds the position. An error breaks out of the loop that
encloses the parser, with its code in `perr` and the position before the failing operation in `o`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ofan_p4.softswitch.base.errors import PipelineError
from ofan_p4.softswitch.codegen.constants import Constants
from ofan_p4.softswitch.codegen.expressions import (
    ZERO,
    Expressions,
    HeaderRef,
    cut_to,
    last_index,
)
from ofan_p4.softswitch.codegen.extraction import Cursor, ExtractionCode
from ofan_p4.softswitch.codegen.flow import Block, Branch, Code, emit, when
from ofan_p4.softswitch.codegen.headers import all_of
from ofan_p4.softswitch.codegen.layout import unsigned
from ofan_p4.softswitch.codegen.liveness import Liveness
from ofan_p4.softswitch.codegen.nodes import (
    Binary,
    Compare,
    Expression,
    Not,
    Number,
    Truth,
)
from ofan_p4.softswitch.codegen.packet_nodes import InSet
from ofan_p4.softswitch.codegen.primitives import Primitives
from ofan_p4.softswitch.codegen.program import (
    Header,
    Json,
    ParseState,
    Program,
    hex_int,
    where_of,
)
from ofan_p4.softswitch.codegen.statements import Assign
from ofan_p4.softswitch.codegen.storing import StoreCode
from ofan_p4.softswitch.codegen.tracing import Label, Tracing
from ofan_p4.softswitch.codegen.variables import PARSER_ERROR, POSITION, peeked


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
        self._primitives = primitives
        self._expressions = Expressions(program)
        self._stores = StoreCode(program, self._expressions, liveness, tracing)
        self._extraction = ExtractionCode(
            program, self._expressions, constants=constants, liveness=liveness, tracing=tracing
        )
        self._value_sets = {value_set.name: value_set.id for value_set in program.value_sets}

    def code(self) -> Code:
        """Return the parser as statements that end with `o` after the last consumed byte."""
        states = self._program.parser.states
        offsets = self._offsets()
        graph = {name: self._block(states[name], offsets) for name in offsets}

        return [
            Assign(POSITION, ZERO),
            # p4c counts from the program's own errors on where these come before core.p4's.
            Assign(PARSER_ERROR, self._extraction.error("NoError")),
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

    def _end(self, state: ParseState, start: int | None) -> int | None:
        cursor = Cursor(start)
        # Only where the cursor ends is of interest. The statements are dropped; the constants they
        # have named stay, which is why the first K of a program is rarely K0.
        for op in state.ops:
            self._op(op, cursor)

        return cursor.at

    def _block(self, state: ParseState, offsets: Mapping[str, int | None]) -> Block:
        cursor = Cursor(offsets[state.name])
        self._tracing.where = state.where
        entered = self._tracing.at("state", state.name)
        code = [part for op in state.ops for part in self._op(op, cursor)]
        more, keys, widths = self._key(state, cursor)
        branches = [
            self._branch(item, keys, widths, cursor=cursor, offsets=offsets)
            for item in state.transitions
        ]

        # Where no transition matches, the parser ends and the pipeline sees the headers parsed so
        # far.
        if not branches or branches[-1].condition is not None:
            branches.append(Branch(None, None, tuple(cursor.stored())))

        return Block((*entered, *code, *more), tuple(branches))

    def _branch(
        self,
        item: Json,
        keys: Sequence[Expression],
        widths: Sequence[int],
        cursor: Cursor,
        offsets: Mapping[str, int | None],
    ) -> Branch:
        target = item.get("next_state")
        # A state with a constant offset never looks at `o`: it is stored on the ways that need it.
        position = cursor.stored() if target is None or offsets[target] is None else []
        values = [(Label("", bits), key) for key, bits in zip(keys, widths, strict=True)]
        chosen = self._tracing.at("select", target or "accept", values)

        return Branch(self._condition(item, keys, widths), target, (*chosen, *position))

    def _condition(
        self, item: Json, keys: Sequence[Expression], widths: Sequence[int]
    ) -> Expression | None:
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

            number = self._value_sets[item["value"]]
            masked = tuple(
                key if bits is None else Binary("&", key, Number(bits))
                for key, bits in zip(keys, masks, strict=True)
            )
            return InSet(number, masked, tuple(masks))

        values = _split(hex_int(item["value"], "transition value"), widths)
        conditions = [
            _test(key, value, bits, width)
            for key, value, bits, width in zip(keys, values, masks, widths, strict=True)
        ]

        tests = [test for test in conditions if test is not None]
        return all_of(tests) if tests else Truth(value=True)

    def _key(self, state: ParseState, cursor: Cursor) -> tuple[Code, list[Expression], list[int]]:
        """Return the code of the transition key, its parts and their widths in bits."""
        code: Code = []
        keys: list[Expression] = []
        widths = []

        for i, item in enumerate(state.key):
            if item["type"] == "lookahead":
                check, value = self._extraction.lookahead(item["value"], cursor)
                # Read once, before the first comparison: a select may compare it with many values.
                bits = item["value"][1]
                code += [*check, Assign(peeked(i, bits), value)]
                keys.append(peeked(i, bits))
                widths.append(bits)
            else:
                key, bits = self._key_field(item)
                keys.append(key)
                widths.append(bits)

        return code, keys, widths

    def _key_field(self, item: Json) -> tuple[Expression, int]:
        value = item["value"]
        match item["type"]:
            case "field" if value[1] == "$valid$":
                return self._program.header(value[0]).valid, 1
            case "field":
                field = self._program.field(*value)
                return unsigned(field), field.bits
            case "stack_field":
                headers = [
                    self._program.headers[i] for i in self._expressions.stack(value[0]).elements
                ]
                return self._last(value[0], headers, value[1])
            case "union_stack_field":
                return self._last(
                    value[0],
                    self._extraction.members(self._expressions.stack(value[0]), value[1]),
                    value[2],
                )

        raise PipelineError(f"unknown transition key type {item['type']!r}")

    def _last(self, stack: str, headers: Sequence[Header], name: str) -> tuple[Expression, int]:
        fields = [self._program.field(header.name, name) for header in headers]
        ref = HeaderRef(tuple(headers), last_index(self._expressions.stack(stack)))
        return ref.pick([unsigned(field) for field in fields]), fields[0].bits

    def _op(self, op: Json, cursor: Cursor) -> Code:
        parameters = op["parameters"]
        self._tracing.where = where_of(op) or self._tracing.where
        match op["op"]:
            case "extract":
                return self._extraction.extract(parameters[0], None, cursor)
            case "extract_VL":
                return self._extraction.extract(parameters[0], parameters[1], cursor)
            case "set":
                return self._set(parameters, cursor)
            case "verify":
                error = cut_to(self._expressions.data(parameters[1]), PARSER_ERROR.width)
                failed = self._extraction.fail(error, cursor)
                return [when(Not(self._expressions.boolean(parameters[0])), failed)]
            case "shift":
                return self._extraction.advance(Number(int(parameters[0]) * 8), cursor)
            case "advance":
                return self._extraction.advance(self._expressions.data(parameters[0]), cursor)
            case "primitive":
                return self._primitives.primitive(parameters[0])

        raise PipelineError(f"unknown parser operation {op['op']!r}")

    def _set(self, parameters: Json, cursor: Cursor) -> Code:
        target, source = parameters
        if source["type"] != "lookahead":
            return self._stores.store(target, self._expressions.data(source))

        check, value = self._extraction.lookahead(source["value"], cursor)
        return [*check, *self._stores.store(target, value)]


def _split(value: int, widths: Sequence[int]) -> list[int]:
    """Split a transition value, in which every part is padded to whole bytes, into its parts."""
    parts = []
    for width in reversed(widths):
        # As BMv2 builds a transition key: each part on whole bytes, the first most significant.
        padded = -(-width // 8) * 8
        parts.append(value & (1 << padded) - 1)
        value >>= padded

    return parts[::-1]


def _test(key: Expression, value: int, mask: int | None, width: int) -> Expression | None:
    # A full mask is no mask, and an empty one no test.
    full = (1 << width) - 1
    if mask is None or mask & full == full:
        return Compare("==", key, Number(value))

    return Compare("==", Binary("&", key, Number(mask)), Number(value & mask)) if mask else None
