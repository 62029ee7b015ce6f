"""Actions: the primitives of v1model as statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ofan_p4.softswitch.base.errors import PipelineError
from ofan_p4.softswitch.codegen import names
from ofan_p4.softswitch.codegen.arguments import PACKET_LENGTH
from ofan_p4.softswitch.codegen.constants import Constants
from ofan_p4.softswitch.codegen.expressions import (
    ONE,
    ZERO,
    Expressions,
    constant_below,
    inner,
)
from ofan_p4.softswitch.codegen.flow import Block, Branch, Code, by_index, emit, when
from ofan_p4.softswitch.codegen.hashing import calculated, modulo, parts_of
from ofan_p4.softswitch.codegen.headers import HeaderCode
from ofan_p4.softswitch.codegen.layout import masked
from ofan_p4.softswitch.codegen.liveness import Liveness
from ofan_p4.softswitch.codegen.nodes import (
    Binary,
    Call,
    Compare,
    DropPort,
    Expression,
    Not,
)
from ofan_p4.softswitch.codegen.packet_nodes import Asked, Cell, Draw, Metered, Packets
from ofan_p4.softswitch.codegen.program import (
    Action,
    Array,
    Header,
    Json,
    Program,
    Stack,
    where_of,
)
from ofan_p4.softswitch.codegen.statements import Ask, Assign, CountCell, Log
from ofan_p4.softswitch.codegen.storing import StoreCode
from ofan_p4.softswitch.codegen.tracing import Label, Tracing
from ofan_p4.softswitch.codegen.variables import COLOR, CUTOFF, DRAWN, EXITED

# BMv2 keeps 15 bits of a clone session's number.
SESSION_BITS = 15


class Primitives:
    """Translates the actions of one program."""

    def __init__(
        self, program: Program, constants: Constants, liveness: Liveness, tracing: Tracing
    ) -> None:
        self._program = program
        self._tracing = tracing
        self._constants = constants
        self._liveness = liveness
        self._headers = HeaderCode(program, liveness)
        self._begin(())
        self._counters = {array.name: array for array in program.counters}
        self._meters = {array.name: array for array in program.meters}
        self.used: set[str] = set()

    def _begin(self, parameter_bits: tuple[int, ...]) -> None:
        """Read parameters of these widths from here on."""
        self.expressions = Expressions(self._program, parameter_bits)
        self.stores = StoreCode(self._program, self.expressions, self._liveness, self._tracing)

    def action(self, action: Action) -> Code:
        """Return the body of an action; `variables.parameter` gives its arguments."""
        # Parameters are known by position; their widths belong to this action alone.
        self._begin(action.parameter_bits)
        # An `if` inside an action is a jump over some of its primitives.
        if any(call["op"].startswith("_jump") for call in action.primitives):
            return self._graph(action.primitives)

        return [part for call in action.primitives for part in self.primitive(call)]

    def primitive(self, call: Json) -> Code:
        """Return the statements of one primitive call."""
        op = call["op"]
        parameters = call.get("parameters", ())
        handler = _HANDLERS.get(op)

        if handler is None:
            raise PipelineError(f"unknown primitive {op!r}")

        self.used.add(op)
        self._tracing.where = where_of(call) or self._tracing.where
        try:
            return [*handler(self, *parameters), *self._traced(op, parameters)]
        except TypeError as error:
            # The handlers' own signatures are the table of how many parameters a primitive takes.
            if "positional argument" not in str(error):
                raise

            raise PipelineError(f"primitive {op!r} with {len(parameters)} parameters") from None

    def _graph(self, calls: Sequence[Json]) -> Code:
        """Return the body of an action with jumps."""
        blocks = {}
        for i, call in enumerate(calls):
            following = str(i + 1)
            match call["op"]:
                case "_jump":
                    blocks[str(i)] = Block((), (Branch(None, self._label(call["parameters"][0])),))
                case "_jump_if_zero":
                    condition, target = call["parameters"]
                    test = self.expressions.condition(condition)
                    taken = Branch(Not(test), self._label(target))
                    blocks[str(i)] = Block((), (taken, Branch(None, following)))
                case _:
                    blocks[str(i)] = Block(tuple(self.primitive(call)), (Branch(None, following),))

        # Jumps may go behind the last primitive.
        blocks[str(len(calls))] = Block(())
        return emit(blocks, "0")

    def _label(self, target: Json) -> str:
        return str(constant_below(self.expressions.data(target)))

    def _traced(self, op: str, parameters: Sequence[Json]) -> Code:
        """Trace a primitive without a stored value that shows its effect."""
        if op not in _TRACED:
            return []

        return self._tracing.at(op, _TRACED[op])

    def _validity(self, header: Header) -> Code:
        return self._tracing.at("header", header.name, [(Label("valid", 1), header.valid)])

    def _assign(self, target: Json, source: Json) -> Code:
        return self.stores.store(target, self.expressions.data(source))

    def _assign_header(self, target: Json, source: Json) -> Code:
        to = self.expressions.header(target)
        copied = self._headers.assign(to, self.expressions.header(source))
        return [*copied, *(part for header in to.headers for part in self._validity(header))]

    def _assign_union(self, target: Json, source: Json) -> Code:
        unions = [
            self._program.unions[self._program.union_ids[inner(item)["value"]]]
            for item in (target, source)
        ]

        return self._headers.assign_all(unions[0].members, unions[1].members)

    def _assign_stack(self, target: Json, source: Json) -> Code:
        to, origin = (self.expressions.stack(inner(item)["value"]) for item in (target, source))
        return self._headers.assign_stack(to, origin)

    def _add_header(self, target: Json) -> Code:
        ref = self.expressions.header(target)
        arms = [[*self._headers.add(header), *self._validity(header)] for header in ref.headers]
        return arms[0] if ref.index is None else by_index(ref.index, arms)

    def _remove_header(self, target: Json) -> Code:
        ref = self.expressions.header(target)
        arms = [[*self._headers.remove(header), *self._validity(header)] for header in ref.headers]
        return arms[0] if ref.index is None else by_index(ref.index, arms)

    def _push(self, stack: Json, count: Json) -> Code:
        return self._shift(stack, count, self._headers.push)

    def _pop(self, stack: Json, count: Json) -> Code:
        return self._shift(stack, count, self._headers.pop)

    def _shift(self, stack: Json, count: Json, shift: Callable[[Stack, int], Code]) -> Code:
        amount = constant_below(self.expressions.data(count))
        shifted = self.expressions.stack(inner(stack)["value"])
        # P4_16 wants a compile-time constant for push_front and pop_front.
        if amount is None:
            raise PipelineError("push and pop need a constant count")

        traced = self._tracing.at("stack", shifted.name, [(Label("next", 32), shifted.next)])
        return [*shift(shifted, amount), *traced]

    def _drop(self, *headers: Json) -> Code:
        # p4c hands on a copy of the standard metadata where the program does: then BMv2 writes this
        # copy alone.
        for header in headers:
            if (name := self.expressions.header(header).headers[0].name) != "standard_metadata":
                return [
                    *self.stores.set_field(self._program.field(name, "egress_spec"), DropPort()),
                    *self.stores.set_field(self._program.field(name, "mcast_grp"), ZERO),
                ]

        values: tuple[tuple[str, Expression], ...] = (
            ("standard_metadata.egress_spec", DropPort()),
            # A multicast group would win over the drop: mark_to_drop of v1model clears it.
            ("intrinsic_metadata.mcast_grp", ZERO),
        )
        fields = ((self._program.intrinsic(name), value) for name, value in values)
        return [Assign(field.var, value) for field, value in fields if field is not None]

    def _register_read(self, target: Json, register: Json, index: Json) -> Code:
        array = self.expressions.register(inner(register)["value"])
        cell_index = self.expressions.data(index)
        cell = Cell(array.id, cell_index, array.bits)
        traced = self._tracing.cell("register_read", array, cell_index, cell)
        # Beyond the end of the array the target keeps its value.
        read = [*traced, *self.stores.store(target, cell)]

        stray = self._program.stray_reads + array.id
        return self.stores.guarded(cell_index, array, read, stray) if read else []

    def _register_write(self, register: Json, index: Json, source: Json) -> Code:
        array = self.expressions.register(inner(register)["value"])
        return self.stores.write_cell(
            array, self.expressions.data(index), self.expressions.data(source)
        )

    def _count(self, counter: Json, index: Json) -> Code:
        array = _named(self._counters, inner(counter)["value"], "counter")
        cell_index = self.expressions.data(index)
        counted = CountCell(array.id, cell_index, PACKET_LENGTH)
        traced = self._tracing.cell("counter", array, cell_index, Packets())

        stray = self._program.stray_counts + array.id
        return self.stores.guarded(cell_index, array, [counted, *traced], stray)

    def _execute_meter(self, meter: Json, index: Json, target: Json) -> Code:
        array = _named(self._meters, inner(meter)["value"], "meter")
        cell_index = self.expressions.data(index)
        colored = Assign(COLOR, Metered(array.id, cell_index))
        traced = self._tracing.cell("meter", array, cell_index, COLOR)

        code = [colored, *traced, *self.stores.store(target, COLOR)]
        stray = self._program.stray_colors + array.id
        return self.stores.guarded(cell_index, array, code, stray)

    def _random(self, target: Json, low: Json, high: Json) -> Code:
        least = self.expressions.data(low)
        greatest = self.expressions.data(high)
        # BMv2's `random` includes both bounds.
        draw = [Assign(DRAWN, Draw(least, greatest)), *self.stores.store(target, DRAWN)]
        # Drawing from an empty range would raise; it assigns nothing.
        first, last = constant_below(least), constant_below(greatest)
        if first is not None and last is not None:
            return draw if first <= last else []

        return [when(Compare("<=", least, greatest), draw)]

    def _hash(self, target: Json, base: Json, calculation: Json, size: Json) -> Code:
        named = self._program.calculations.get(inner(calculation)["value"])
        if named is None:
            raise PipelineError(f"no calculation is called {inner(calculation)['value']!r}")

        parts = parts_of(self._program, named.inputs)
        value = calculated(self._program, self._constants, named, parts)
        # hash() of v1model: base + hash mod max.
        value = modulo(value, self.expressions.data(size))
        start = self.expressions.data(base)

        return self.stores.store(target, value if start == ZERO else Binary("+", value, start))

    def _digest(self, _receiver: Json, digest: Json) -> Code:
        return [Ask(names.DIGEST, (self.expressions.data(digest),))]

    def _clone(self, session: Json, field_list: Json) -> Code:
        # Noted until the pipeline ends: of several calls only the last one counts, as in BMv2.
        kept = masked(self.expressions.data(session), SESSION_BITS)
        traced = self._tracing.at(
            "clone", "clone to session", [(Label("session", 15), Asked(names.CLONE, 0))]
        )
        return [Ask(names.CLONE, (kept, self.expressions.data(field_list))), *traced]

    def _resubmit(self, field_list: Json) -> Code:
        return [Ask(names.RESUBMIT, (self.expressions.data(field_list),))]

    def _recirculate(self, field_list: Json) -> Code:
        return [Ask(names.RECIRCULATE, (self.expressions.data(field_list),))]

    def _truncate(self, size: Json) -> Code:
        # Ingress and egress may both truncate; the shorter one holds.
        return [Assign(CUTOFF, Call("min", (CUTOFF, self.expressions.data(size))))]

    def _exit(self) -> Code:
        return [Assign(EXITED, ONE)]

    def _assert(self, condition: Json) -> Code:
        # Translated in any case, so that a condition that makes no sense is refused.
        test = self.expressions.condition(condition)
        traced = self._tracing.at("assert", "assertion violated")
        return [when(Not(test), traced)] if traced else []

    def _log(self, text: Json, values: Json) -> Code:
        logged = tuple(self.expressions.data(value) for value in values["value"])
        message = str(text["value"])
        traced = self._tracing.at("log_msg", message, [(Label("", 0), value) for value in logged])
        return [*traced, Log(self._constants.add(message), message, logged)]

    def _no_op(self) -> Code:
        return []


def _named(arrays: dict[str, Array], name: str, noun: str) -> Array:
    if name not in arrays:
        raise PipelineError(f"no {noun} array is called {name!r}")

    return arrays[name]


# P4_14's primitives, which BMv2 still understands, as the expressions they stand for.
def _binary(op: str) -> Callable[[Primitives, Json, Json, Json], Code]:
    def handler(code: Primitives, target: Json, left: Json, right: Json) -> Code:
        return code.stores.store(
            target, code.expressions.data({"op": op, "left": left, "right": right})
        )

    return handler


def _in_place(op: str) -> Callable[[Primitives, Json, Json], Code]:
    def handler(code: Primitives, target: Json, right: Json) -> Code:
        return code.stores.store(
            target, code.expressions.data({"op": op, "left": target, "right": right})
        )

    return handler


_TRACED = {
    "drop": "mark to drop",
    "exit": "exit",
    "generate_digest": "digest",
    "mark_to_drop": "mark to drop",
    "recirculate": "recirculate",
    "resubmit": "resubmit",
    "truncate": "truncate",
}
"""Primitives whose effect shows in no field, register or header, and what they are called."""

_HANDLERS: dict[str, Callable[..., Code]] = {
    "add": _binary("+"),
    "add_header": Primitives._add_header,
    "add_header_fast": Primitives._add_header,
    "add_to_field": _in_place("+"),
    "assert": Primitives._assert,
    "assign": Primitives._assign,
    "assign_VL": Primitives._assign,
    "assign_header": Primitives._assign_header,
    "assign_header_stack": Primitives._assign_stack,
    "assign_union": Primitives._assign_union,
    "assign_union_stack": Primitives._assign_stack,
    "assume": Primitives._assert,
    "bit_and": _binary("&"),
    "bit_or": _binary("|"),
    "bit_xor": _binary("^"),
    "clone_egress_pkt_to_egress": Primitives._clone,
    "clone_ingress_pkt_to_egress": Primitives._clone,
    "copy_header": Primitives._assign_header,
    "count": Primitives._count,
    "drop": Primitives._drop,
    "execute_meter": Primitives._execute_meter,
    "exit": Primitives._exit,
    "generate_digest": Primitives._digest,
    "log_msg": Primitives._log,
    "mark_to_drop": Primitives._drop,
    "modify_field": Primitives._assign,
    "modify_field_rng_uniform": Primitives._random,
    "modify_field_with_hash_based_offset": Primitives._hash,
    "no_op": Primitives._no_op,
    "pop": Primitives._pop,
    "push": Primitives._push,
    "recirculate": Primitives._recirculate,
    "register_read": Primitives._register_read,
    "register_write": Primitives._register_write,
    "remove_header": Primitives._remove_header,
    "resubmit": Primitives._resubmit,
    "shift_left": _binary("<<"),
    "shift_right": _binary(">>"),
    "subtract": _binary("-"),
    "subtract_from_field": _in_place("-"),
    "truncate": Primitives._truncate,
}
