"""Actions: the primitives of v1model as Python statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from emulation.softswitch.codegen import names
from emulation.softswitch.codegen.constants import Constants
from emulation.softswitch.codegen.expressions import Expressions, Value, cut, in_bounds, inner
from emulation.softswitch.codegen.flow import Block, Branch, Lines, emit, indent, tuple_of
from emulation.softswitch.codegen.hashing import hash_value, parts_of
from emulation.softswitch.codegen.headers import HeaderCode
from emulation.softswitch.codegen.liveness import Liveness
from emulation.softswitch.codegen.program import (
    Action,
    Array,
    Field,
    Header,
    Json,
    Program,
    Stack,
    where_of,
)
from emulation.softswitch.codegen.tracing import Label, Tracing
from emulation.softswitch.errors import PipelineError

# BMv2 keeps 15 bits of a clone session's number.
SESSION_MASK = (1 << 15) - 1
# What egress_spec says of a packet to be dropped.
DROPPED = Value(names.DROP, 9)


class Primitives:
    """Translates the actions of one program."""

    def __init__(
        self, program: Program, constants: Constants, liveness: Liveness, tracing: Tracing
    ) -> None:
        self._program = program
        self._tracing = tracing
        self._constants = constants
        self._liveness = liveness
        self.expressions = Expressions(program)
        self._headers = HeaderCode(program, liveness)
        self._counters = {array.name: array for array in program.counters}
        self._meters = {array.name: array for array in program.meters}
        self.used: set[str] = set()

    def action(self, action: Action) -> Lines:
        """Return the body of an action; `names.parameter` says where its arguments are."""
        # Parameters are known by position; their widths belong to this action alone.
        self.expressions = Expressions(self._program, action.parameter_bits)
        # An `if` inside an action is a jump over some of its primitives.
        if any(call["op"].startswith("_jump") for call in action.primitives):
            return self._graph(action.primitives)

        return [line for call in action.primitives for line in self.primitive(call)]

    def primitive(self, call: Json) -> Lines:
        """Return the statements of one primitive call."""
        op = call["op"]
        parameters = call.get("parameters", ())
        handler = _HANDLERS.get(op)

        if handler is None:
            raise PipelineError(f"unknown primitive {op!r}")

        self.used.add(op)
        self._tracing.where = where_of(call) or self._tracing.where
        try:
            return [*handler(self, *parameters), *self._told(op, parameters)]
        except TypeError as error:
            # The handlers' own signatures are the table of how many parameters a primitive takes.
            if "positional argument" not in str(error):
                raise

            raise PipelineError(f"primitive {op!r} with {len(parameters)} parameters") from None

    def _graph(self, calls: Sequence[Json]) -> Lines:
        """Return the body of an action with jumps."""
        blocks = {}
        for i, call in enumerate(calls):
            following = str(i + 1)
            match call["op"]:
                case "_jump":
                    blocks[str(i)] = Block((), (Branch(None, self._label(call["parameters"][0])),))
                case "_jump_if_zero":
                    condition, target = call["parameters"]
                    taken = Branch(f"not {self._condition(condition)}", self._label(target))
                    blocks[str(i)] = Block((), (taken, Branch(None, following)))
                case _:
                    blocks[str(i)] = Block(tuple(self.primitive(call)), (Branch(None, following),))

        # Jumps may go behind the last primitive.
        blocks[str(len(calls))] = Block(())
        return emit(blocks, "0")

    def _label(self, target: Json) -> str:
        return self.expressions.data(target).source

    def _condition(self, condition: Json) -> str:
        if self.expressions.is_boolean(condition):
            return self.expressions.boolean(condition)

        return self.expressions.data(condition).source

    def store(self, target: Json, value: Value) -> Lines:
        """Return the assignment of a value to an lvalue."""
        node = inner(target)
        if node.get("type") == "field":
            return self._set(self._program.field(*node["value"]), value)

        if node.get("type") == "register":
            array = self.expressions.register(node["value"][0])
            return self._write_cell(array, self.expressions.data(node["value"][1]), value)

        if node.get("type") == "stack_field":
            return self._store_last(
                self.expressions.stack(node["value"][0]), node["value"][1], value
            )

        found = self.expressions.field_of(node)
        if found is None:
            raise PipelineError(f"cannot assign to {node!r}")

        ref, fields = found
        if ref.index is None:
            return self._set(fields[0], value)

        return _by_index(ref.index, [self._set(field, value) for field in fields])

    def _set(self, field: Field, value: Value) -> Lines:
        # Nobody will look at it: the whole statement goes, not only the store.
        if not self._liveness.is_live(field):
            return []

        return [f"{field.var} = {cut(field, value)}", *self._tracing.assigned(field)]

    def _told(self, op: str, parameters: Sequence[Json]) -> Lines:
        """Report a primitive that the values it stores do not show."""
        if op not in _TOLD:
            return []

        return self._tracing.at(op, _TOLD[op])

    def _validity(self, header: Header) -> Lines:
        return self._tracing.at("header", header.name, [(Label("valid", 1), header.valid)])

    def _store_last(self, stack: Stack, name: str, value: Value) -> Lines:
        headers = [self._program.headers[i] for i in stack.elements]
        fields = [self._program.field(header.name, name) for header in headers]
        return _by_index(f"{stack.next} - 1", [self._set(field, value) for field in fields])

    def _write_cell(self, array: Array, index: Value, value: Value) -> Lines:
        # A cell is cut like a field.
        source = value.source
        if value.bits is None or value.bits > array.bits:
            source = f"{source} & {(1 << array.bits) - 1}"

        return _guarded(in_bounds(index, array.size), self._written(array, index, source))

    def _written(self, array: Array, index: Value, source: str) -> Lines:
        cell = f"{names.register(array.id)}[{index.source}]"
        return [
            f"{cell} = {source}",
            *self._tracing.cell("register_write", array, index.source, cell),
        ]

    def _assign(self, target: Json, source: Json) -> Lines:
        return self.store(target, self.expressions.data(source))

    def _assign_header(self, target: Json, source: Json) -> Lines:
        to = self.expressions.header(target)
        copied = self._headers.assign(to, self.expressions.header(source))
        return [*copied, *(line for header in to.headers for line in self._validity(header))]

    def _assign_union(self, target: Json, source: Json) -> Lines:
        unions = [
            self._program.unions[self._program.union_ids[inner(item)["value"]]]
            for item in (target, source)
        ]

        return self._headers.assign_all(unions[0].members, unions[1].members)

    def _assign_stack(self, target: Json, source: Json) -> Lines:
        to, origin = (self.expressions.stack(inner(item)["value"]) for item in (target, source))
        return self._headers.assign_stack(to, origin)

    def _add_header(self, target: Json) -> Lines:
        ref = self.expressions.header(target)
        arms = [[*self._headers.add(header), *self._validity(header)] for header in ref.headers]
        return arms[0] if ref.index is None else _by_index(ref.index, arms)

    def _remove_header(self, target: Json) -> Lines:
        ref = self.expressions.header(target)
        arms = [[*self._headers.remove(header), *self._validity(header)] for header in ref.headers]
        return arms[0] if ref.index is None else _by_index(ref.index, arms)

    def _push(self, stack: Json, count: Json) -> Lines:
        return self._shift(stack, count, self._headers.push)

    def _pop(self, stack: Json, count: Json) -> Lines:
        return self._shift(stack, count, self._headers.pop)

    def _shift(self, stack: Json, count: Json, shift: Callable[[Stack, int], Lines]) -> Lines:
        amount = self.expressions.data(count).source
        found = self.expressions.stack(inner(stack)["value"])
        # P4_16 wants a compile-time constant for push_front and pop_front.
        if not amount.isdigit():
            raise PipelineError("push and pop need a constant count")

        told = self._tracing.at("stack", found.name, [(Label("next", 32), found.next)])
        return [*shift(found, int(amount)), *told]

    def _drop(self, *given: Json) -> Lines:
        # p4c hands on a copy of the standard metadata where the program does: then BMv2 writes this
        # copy alone.
        for header in given:
            if (name := self.expressions.header(header).headers[0].name) != "standard_metadata":
                return [
                    *self._set(self._program.field(name, "egress_spec"), DROPPED),
                    *self._set(self._program.field(name, "mcast_grp"), Value("0", 16)),
                ]

        lines = []
        for name, value in (
            ("standard_metadata.egress_spec", names.DROP),
            # A multicast group would win over the drop: mark_to_drop of v1model clears it.
            ("intrinsic_metadata.mcast_grp", 0),
        ):
            field = self._program.intrinsic(name)
            if field is not None:
                lines.append(f"{field.var} = {value}")

        return lines

    def _register_read(self, target: Json, register: Json, index: Json) -> Lines:
        array = self.expressions.register(inner(register)["value"])
        place = self.expressions.data(index)
        cell = f"{names.register(array.id)}[{place.source}]"
        told = self._tracing.cell("register_read", array, place.source, cell)
        # Beyond the end of the array the target keeps its value.
        read = [*told, *self.store(target, Value(cell, array.bits))]

        return _guarded(in_bounds(place, array.size), read) if read else []

    def _register_write(self, register: Json, index: Json, source: Json) -> Lines:
        array = self.expressions.register(inner(register)["value"])
        return self._write_cell(array, self.expressions.data(index), self.expressions.data(source))

    def _count(self, counter: Json, index: Json) -> Lines:
        array = _named(self._counters, inner(counter)["value"], "counter")
        place = self.expressions.data(index)
        packets = f"{names.CELL}[0]"
        octets = f"{names.CELL}[1]"
        lines = [
            f"{names.CELL} = {names.counter(array.id)}[{place.source}]",
            f"{packets} += 1",
            f"{octets} += {names.PACKET_LENGTH}",
            *self._tracing.cell("counter", array, place.source, packets),
        ]

        return _guarded(in_bounds(place, array.size), lines)

    def _execute_meter(self, meter: Json, index: Json, target: Json) -> Lines:
        array = _named(self._meters, inner(meter)["value"], "meter")
        place = self.expressions.data(index)
        cell = f"{names.meter(array.id)}[{place.source}]"
        colored = f"{names.RESULT} = {cell}.execute({names.NOW}, {names.PACKET_LENGTH})"
        told = self._tracing.cell("meter", array, place.source, names.RESULT)

        return _guarded(
            in_bounds(place, array.size),
            [colored, *told, *self.store(target, Value(names.RESULT, 2))],
        )

    def _random(self, target: Json, low: Json, high: Json) -> Lines:
        bounds = self.expressions.data(low).source, self.expressions.data(high).source
        # BMv2's `random` includes both bounds.
        draw = [
            f"{names.RESULT} = {names.RANDOM}({bounds[0]}, {bounds[1]})",
            *self.store(target, Value(names.RESULT, None)),
        ]
        # Drawing from an empty range would raise; it assigns nothing.
        if all(bound.isdigit() for bound in bounds):
            return draw if int(bounds[0]) <= int(bounds[1]) else []

        return [f"if {bounds[0]} <= {bounds[1]}:", *indent(draw)]

    def _hash(self, target: Json, base: Json, calculation: Json, size: Json) -> Lines:
        named = self._program.calculations.get(inner(calculation)["value"])
        if named is None:
            raise PipelineError(f"no calculation is called {inner(calculation)['value']!r}")

        value = hash_value(self._constants, named.algorithm, parts_of(self._program, named.inputs))
        # hash() of v1model: base + hash mod max.
        value = _modulo(value, self.expressions.data(size))
        start = self.expressions.data(base)

        if start.source != "0":
            value = Value(f"({value.source}) + {start.source}", None)

        return self.store(target, value)

    def _digest(self, _receiver: Json, digest: Json) -> Lines:
        return [f"{names.DIGEST} = {self.expressions.data(digest).source}"]

    def _clone(self, session: Json, field_list: Json) -> Lines:
        source = self.expressions.data(session).source
        # Only noted: several calls are one clone, and the last one counts, as in BMv2.
        kept = self.expressions.data(field_list).source
        told = self._tracing.at(
            "clone", "clone to session", [(Label("session", 15), f"{names.CLONE}[0]")]
        )
        return [f"{names.CLONE} = ({source} & {SESSION_MASK}, {kept})", *told]

    def _resubmit(self, field_list: Json) -> Lines:
        return [f"{names.RESUBMIT} = {self.expressions.data(field_list).source}"]

    def _recirculate(self, field_list: Json) -> Lines:
        return [f"{names.RECIRCULATE} = {self.expressions.data(field_list).source}"]

    def _truncate(self, size: Json) -> Lines:
        # Ingress and egress may both truncate; the shorter one holds.
        limit = self.expressions.data(size).source
        return [f"{names.CUTOFF} = min({names.CUTOFF}, {limit})"]

    def _exit(self) -> Lines:
        return [f"{names.EXITED} = 1"]

    def _assert(self, condition: Json) -> Lines:
        # Translated in any case, so that a condition that makes no sense is refused.
        test = self._condition(condition)
        told = self._tracing.at("assert", "assertion violated")
        return [f"if not {test}:", *indent(told)] if told else []

    def _log(self, text: Json, values: Json) -> Lines:
        sources = [self.expressions.data(value).source for value in values["value"]]
        told = self._tracing.at(
            "log_msg", str(text["value"]), [(Label("", 0), source) for source in sources]
        )
        said = self._constants.add(str(text["value"]))
        return [*told, f"{names.LOG}({said}, {tuple_of(sources)})"]

    def _no_op(self) -> Lines:
        return []


def _named(arrays: dict[str, Array], name: str, what: str) -> Array:
    if name not in arrays:
        raise PipelineError(f"no {what} array is called {name!r}")

    return arrays[name]


def _guarded(condition: str | None, lines: Lines) -> Lines:
    return lines if condition is None else [f"if {condition}:", *indent(lines)]


def _by_index(index: str, arms: Sequence[Lines]) -> Lines:
    """Return the arm whose number is the value of `index`."""
    out: Lines = [f"{names.INDEX} = {index}"]
    for number, lines in enumerate(arms):
        out += [f"{'elif' if number else 'if'} {names.INDEX} == {number}:", *indent(lines)]

    return out


def _modulo(value: Value, size: Value) -> Value:
    """Return `value % size`, where BMv2 takes a size of 0 for 1."""
    if not size.source.isdigit():
        return Value(f"{value.source} % ({size.source} or 1)", size.bits)

    limit = int(size.source) or 1
    if value.bits is not None and 1 << value.bits <= limit:
        return value
    # A power of two: the low bits are the remainder.
    if limit & limit - 1 == 0:
        return Value(f"{value.source} & {limit - 1}", limit.bit_length() - 1)

    return Value(f"{value.source} % {limit}", (limit - 1).bit_length())


# P4_14's primitives, which BMv2 still understands, as the expressions they stand for.
def _binary(op: str) -> Callable[[Primitives, Json, Json, Json], Lines]:
    def handler(code: Primitives, target: Json, left: Json, right: Json) -> Lines:
        return code.store(target, code.expressions.data({"op": op, "left": left, "right": right}))

    return handler


def _in_place(op: str) -> Callable[[Primitives, Json, Json], Lines]:
    def handler(code: Primitives, target: Json, right: Json) -> Lines:
        return code.store(target, code.expressions.data({"op": op, "left": target, "right": right}))

    return handler


_TOLD = {
    "drop": "mark to drop",
    "exit": "exit",
    "generate_digest": "digest",
    "mark_to_drop": "mark to drop",
    "recirculate": "recirculate",
    "resubmit": "resubmit",
    "truncate": "truncate",
}
"""Primitives whose effect shows in no field, register or header, and what they are called."""

_HANDLERS: dict[str, Callable[..., Lines]] = {
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
