"""The methods of extern objects and of packets."""

from __future__ import annotations

from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.externs.call import PIPELINES, Call, Handler, owner, to_field
from ofan_p4.compiler.midend.operands import number
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.diagnostics import Span


def _extract(call: Call) -> None:
    arg = call.args[0]
    if arg is None:
        header_type = call.types[0]
        if header_type == ty.DONT_CARE:
            fail("the type of the header to skip is missing: write extract<T>(_)", call.span)

        # `extract<T>(_)` skips the header.
        call.frame.emit(ir.Advance(number(ty.width_of(header_type), ty.Bits(32)), call.span))
        return

    header = call.operand(0)
    if (
        not isinstance(header, ir.HeaderAt | ir.NextAt | ir.NextMember)
        or header.type.kind != "header"
    ):
        fail("the target extracts to named headers and to 'next' of a stack only", arg.span)

    length = call.value(1) if len(call.args) > 1 else None
    has_varbit = any(isinstance(item.type, ty.Varbit) for item in header.type.fields)
    # BMv2 has an operation for each sort of header, `extract` and `extract_VL`.
    if has_varbit != (length is not None):
        verb = "needs" if has_varbit else "has no varbit field for"
        fail(f"header {header.type.name} {verb} the length of its varbit field", call.span)

    call.frame.emit(ir.Extract(header, length, call.span))


def _lookahead(call: Call) -> ir.Operand:
    type_ = call.types[0]
    if isinstance(ty.underlying(type_), ty.Struct | ty.Stack):
        # BMv2 compares the rest of the packet with a lookahead's width, not with its offset: only
        # a lookahead of all bits finds the packet too short, and before anything is stored.
        _look(ty.Bits(ty.width_of(type_)), 0, call)

    result, _ = _look(type_, 0, call)
    return result


def _look(type_: ty.Type, offset: int, call: Call) -> tuple[ir.Operand, int]:
    """Copy the bits ahead into temporaries; return them and their number of bits."""
    match ty.underlying(type_):
        case ty.Struct(fields=fields):
            items = []
            start = offset
            for item in fields:
                operand, width = _look(item.type, offset, call)
                items.append(operand)
                offset += width

            return ir.StructAt(
                type_, tuple(item.name for item in fields), tuple(items)
            ), offset - start
        case ty.Stack(element, size):
            # Every element becomes valid, as if it had been extracted.
            element_width = ty.width_of(element)
            elements = [_look(element, offset + i * element_width, call)[0] for i in range(size)]
            return ir.StructAt(
                type_, tuple(map(str, range(size))), tuple(elements)
            ), size * element_width
        case (ty.Bits() | ty.Simple("bool")) as plain:
            bits = ty.width_of(plain)
            ahead: ir.Value = ir.Lookahead(offset, bits, type_)
            # Read now: the parser may have moved on where the value is used.
            copy = call.frame.temporary(type_, call.span, "ahead")
            assert isinstance(copy, ir.FieldRef)
            call.frame.emit(ir.Assign(copy, ahead, call.span))

            return copy, bits

    return fail(f"the target cannot look ahead for {ty.show(type_)}", call.span)


def _advance(call: Call) -> None:
    call.frame.emit(ir.Advance(call.value(0), call.span))


def _emit(call: Call) -> None:
    """Only the order of the headers matters: the target skips those that are not valid."""
    call.frame.builder.switch.emits.extend(headers_of(call.operand(0), call.span))


def headers_of(operand: ir.Operand, span: Span) -> list[ir.HeaderAt]:
    """Return the headers in a struct, stack or union, in order."""
    match operand:
        case ir.HeaderAt():
            return [operand]
        case ir.UnionAt(_, _, parts) | ir.StackAt(_, _, parts) | ir.StructAt(_, _, parts):
            return [header for part in parts for header in headers_of(part, span)]

    return fail("only headers can be emitted", span)


def _register_read(call: Call) -> None:
    index = call.value(1)
    array = ir.Named("register_array", owner(call).name)
    to_field(call, 0, lambda field: call.emit("register_read", field, array, index))


def _register_write(call: Call) -> None:
    array = ir.Named("register_array", owner(call).name)
    call.emit("register_write", array, call.value(0), call.value(1))


def _count(call: Call) -> None:
    call.emit("count", ir.Named("counter_array", owner(call).name), call.value(0))


def _nothing(call: Call) -> None:
    """A direct counter counts by itself when its table is applied."""


def _execute_meter(call: Call) -> None:
    index = call.value(0)
    array = ir.Named("meter_array", owner(call).name)
    to_field(call, 1, lambda field: call.emit("execute_meter", array, index, field))


def _meter_read(call: Call) -> None:
    """The target runs a direct meter when it applies its table, and writes to one field only."""
    field = None if call.args[0] is None else call.operand(0)
    if not isinstance(field, ir.FieldRef):
        fail("the target needs a field for the colour of a direct meter", call.span)

    targets = call.frame.builder.switch.meter_targets
    name = owner(call).name
    if targets.setdefault(name, field) != field:
        fail(f"direct meter '{name}' is read into different fields", call.span)


METHODS: dict[tuple[str, str], Handler] = {
    ("packet", "extract"): (("parser",), _extract),
    ("packet", "lookahead"): (("parser",), _lookahead),
    ("packet", "advance"): (("parser",), _advance),
    ("packet", "emit"): (("deparser",), _emit),
    ("register", "read"): (PIPELINES, _register_read),
    ("register", "write"): (PIPELINES, _register_write),
    ("counter", "count"): (PIPELINES, _count),
    ("direct_counter", "count"): (PIPELINES, _nothing),
    ("meter", "execute_meter"): (PIPELINES, _execute_meter),
    ("direct_meter", "read"): (PIPELINES, _meter_read),
}
