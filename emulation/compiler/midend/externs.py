"""The extern functions and methods of core.p4 and v1model, as steps of the target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emulation.compiler.diagnostics import Span
from emulation.compiler.midend import ir
from emulation.compiler.midend.assignments import as_value, assign, freeze_index
from emulation.compiler.midend.expressions import constant, lower, lower_all, lower_value
from emulation.compiler.midend.frame import Frame, Packet
from emulation.compiler.midend.layout import SCALARS, STANDARD_METADATA, header_field
from emulation.compiler.midend.operands import is_signed, number, reduce_to
from emulation.compiler.midend.statements import store
from emulation.compiler.semantics import typed as t
from emulation.compiler.semantics import types as ty
from emulation.compiler.semantics.scope import fail

PIPELINES = ("ingress", "egress")
ALGORITHMS = (
    "crc32",
    "crc32_custom",
    "crc16",
    "crc16_custom",
    "random",
    "identity",
    "csum16",
    "xor16",
)


@dataclass(frozen=True, slots=True)
class Call:
    """A call as the handlers below see it."""

    span: Span
    name: str
    args: t.Args
    types: tuple[ty.Type, ...]
    frame: Frame
    object: ir.Object | None = None

    def arg(self, index: int) -> t.Expression:
        found = self.args[index]
        assert found is not None
        return found

    def value(self, index: int) -> ir.Value:
        return lower_value(self.arg(index), self.frame)

    def emit(self, name: str, *args: ir.Argument) -> None:
        self.frame.emit(ir.Primitive(name, args, self.span))


def lower_function(node: t.ExternCall, frame: Frame) -> ir.Operand | None:
    """Emit the call of an extern function."""
    handler = FUNCTIONS.get(node.function.name)
    if handler is None:
        fail(f"the target does not know the function '{node.function.name}'", node.span)

    places, function = handler
    if frame.where not in places:
        fail(
            f"'{node.function.name}' cannot be called here, only in {' or '.join(places)}",
            node.span,
        )

    return function(
        Call(node.span, name=node.function.name, args=node.args, types=node.type_args, frame=frame)
    )


def lower_method(node: t.MethodCall, frame: Frame) -> ir.Operand | None:
    """Emit the call of a method of an extern object."""
    target = frame.bindings.get(node.object)
    if isinstance(target, Packet):
        kind = "packet"
        owner = None
    elif isinstance(target, ir.Object):
        kind = target.kind
        owner = target
    else:
        fail(f"'{node.object.name}' cannot be used here", node.span)

    handler = METHODS.get((kind, node.method.name))
    if handler is None:
        fail(f"the target does not know the method '{node.method.name}' of {kind}", node.span)

    places, function = handler
    if frame.where not in places:
        fail(
            f"'{node.method.name}' cannot be called here, only in {' or '.join(places)}", node.span
        )

    return function(
        Call(
            node.span,
            name=node.method.name,
            args=node.args,
            types=node.type_args,
            frame=frame,
            object=owner,
        )
    )


def _to_field(call: Call, index: int, step: Callable[[ir.FieldRef], None]) -> None:
    """Run a step that writes an out argument.

    The target writes to fields only, so others get a copy afterwards.
    """
    arg = call.args[index]
    is_place = arg is not None and not isinstance(arg, t.Slice)
    place = (
        freeze_index(lower(arg, call.frame), call.span, call.frame)
        if arg is not None and is_place
        else None
    )

    if isinstance(place, ir.FieldRef):
        step(place)
        _with_sign(place, call)
        return

    type_ = arg.type if arg is not None else ty.Bits(32)
    copy = call.frame.temporary(type_, call.span)
    if not isinstance(copy, ir.FieldRef):
        fail("the target writes this result to a single field only", call.span)

    step(copy)
    _with_sign(copy, call)
    if place is not None:
        assign(place, copy, call.span, call.frame)
    elif arg is not None:
        store(arg, copy, call.span, call.frame)


def _with_sign(field: ir.FieldRef, call: Call) -> None:
    """Bring a signed field into its range: what the target writes there, from a register or a hash,
    has no sign.
    """
    if is_signed(field.type):
        call.frame.emit(ir.Assign(field, reduce_to(field, field.type), call.span))


# Values of any shape as lists of fields


def flatten(operand: ir.Operand, span: Span) -> list[ir.Value]:
    """Return the single values that an operand is made of."""
    match operand:
        case ir.StructAt(_, _, items):
            return [value for item in items for value in flatten(item, span)]
        case ir.HeaderAt(_, header):
            return [
                value
                for item in header.fields
                for value in flatten(header_field(operand, item.name), span)
            ]
        case _:
            return [as_value(operand, span)]


def _fields(operand: ir.Operand, span: Span, frame: Frame) -> tuple[ir.Value, ...]:
    """Return values as the target's lists want them: fields, or numbers of known width."""
    found = []
    for value in flatten(operand, span):
        if isinstance(value, ir.Num) and value.type == ty.INT:
            fail(f"the number {value.value} needs a width here", span)

        plain = isinstance(value, ir.Num | ir.FieldRef)
        found.append(value if plain else as_value(freeze_value(value, span, frame), span))

    return tuple(found)


def freeze_value(value: ir.Value, span: Span, frame: Frame) -> ir.Operand:
    """Copy a value to a temporary field, also if it is constant."""
    copy = frame.temporary(value.type, span)
    assign(copy, value, span, frame)
    return copy


# Functions


def _mark_to_drop(call: Call) -> None:
    if not call.args:
        call.emit("mark_to_drop", ir.Named("header", STANDARD_METADATA))
        return

    place = lower(call.arg(0), call.frame)
    assert isinstance(place, ir.StructAt)
    if isinstance(place.items[0], ir.FieldRef) and place.items[0].header == STANDARD_METADATA:
        call.emit("mark_to_drop", ir.Named("header", STANDARD_METADATA))
        return

    for field, value in (("egress_spec", 511), ("mcast_grp", 0)):
        target = place.item(field)
        assign(target, number(value, target.type), call.span, call.frame)


def _hash(call: Call) -> None:
    """`result = base + hash(data) % max`, or base where max is 0."""
    algorithm = _algorithm(call.arg(1))
    base, data, size = lower_all((call.arg(2), call.arg(3), call.arg(4)), call.frame)
    base_value = as_value(base, call.span)
    size_value = as_value(size, call.span)

    if isinstance(size_value, ir.Num) and size_value.value == 0:
        _to_field(call, 0, lambda field: assign(field, base_value, call.span, call.frame))
        return

    inputs = _fields(data, call.arg(3).span, call.frame)
    switch = call.frame.builder.switch
    name = f"calc_{len(switch.calculations)}"
    switch.calculations.append(ir.Calculation(name, algorithm, inputs, call.span))
    calculation = ir.Named("calculation", name)
    step = "modify_field_with_hash_based_offset"
    _to_field(call, 0, lambda field: call.emit(step, field, base_value, calculation, size_value))


def _algorithm(node: t.Expression) -> str:
    if not isinstance(node, t.Literal) or node.value not in ALGORITHMS:
        fail("the hash algorithm must be known at compile time", node.span)

    if node.value == "random":
        fail("the target has no hash algorithm 'random'; use the function random()", node.span)

    return str(node.value)


def _random(call: Call) -> None:
    low, high = (
        as_value(item, call.span) for item in lower_all((call.arg(1), call.arg(2)), call.frame)
    )
    _to_field(call, 0, lambda field: call.emit("modify_field_rng_uniform", field, low, high))


def _digest(call: Call) -> None:
    """The target sends the fields when the pipeline ends, so what the digest holds now is copied."""
    data = lower(call.arg(1), call.frame)
    fields = tuple(
        as_value(freeze_value(value, call.span, call.frame), call.span)
        for value in _fields(data, call.arg(1).span, call.frame)
    )

    type_ = call.arg(1).type
    name = type_.name if isinstance(type_, ty.Struct) else "digest"
    digests = call.frame.builder.switch.digests
    digests.append(ir.Digest(name, type_, fields, call.span))
    call.emit("generate_digest", call.value(0), number(len(digests), ty.Bits(32)))


def _clone(call: Call) -> None:
    """`clone(type, session[, field list])`."""
    kind = call.arg(0)
    if not isinstance(kind, t.Literal):
        fail("the type of the clone must be known at compile time", kind.span)

    name, place = CLONES[str(kind.value)]
    if call.frame.where != place:
        fail(f"CloneType.{kind.value} is possible in {place} only", kind.span)

    kept = _data_list if call.name == "clone3" else _field_list
    list_id = kept(call, 2) if len(call.args) > 2 else _empty_list(call)
    call.emit(name, call.value(1), number(list_id, ty.Bits(32)))


CLONES = {
    "I2E": ("clone_ingress_pkt_to_egress", "ingress"),
    "E2E": ("clone_egress_pkt_to_egress", "egress"),
}


def _field_list(call: Call, index: int) -> int:
    """Return the target's id of a field list.

    Ids start at 1, since 0 says that nothing is to be done.
    """
    chosen = constant(call.arg(index), call.frame, "the index of the field list")
    lists = call.frame.builder.switch.field_lists
    lists.setdefault(chosen, [])

    return list(lists).index(chosen) + 1


def _empty_list(call: Call) -> int:
    lists = call.frame.builder.switch.field_lists
    lists.setdefault(-1, [])
    return list(lists).index(-1) + 1


def _preserving(call: Call) -> None:
    call.emit(
        call.name.removesuffix("_preserving_field_list"), number(_field_list(call, 0), ty.Bits(32))
    )


def _data_list(call: Call, index: int) -> int:
    """Return the id of a field list of the fields that an old call names, under an index that no
    annotation has.
    """
    fields = []
    for value in flatten(lower(call.arg(index), call.frame), call.arg(index).span):
        if not isinstance(value, ir.FieldRef) or value.header not in (SCALARS, STANDARD_METADATA):
            fail(f"'{call.name}' can preserve fields of metadata only", call.arg(index).span)

        fields.append(value)

    lists = call.frame.builder.switch.field_lists
    lists[-len(lists) - 2] = fields
    return len(lists)


def _again_with(call: Call) -> None:
    call.emit(call.name, number(_data_list(call, 0), ty.Bits(32)))


def collect_field_lists(metadata: ir.Operand, struct: ty.Type, switch: ir.Switch) -> None:
    """Fill the field lists that the annotations @field_list of the user metadata describe."""
    if not isinstance(struct, ty.Struct) or not isinstance(metadata, ir.StructAt):
        return

    for item in struct.fields:
        if not item.field_lists:
            continue

        fields = flatten(metadata.item(item.name), item.annotations[0].span)
        for index in item.field_lists:
            switch.field_lists.setdefault(index, []).extend(
                value for value in fields if isinstance(value, ir.FieldRef)
            )


def _log_msg(call: Call) -> None:
    message = call.arg(0)
    if not isinstance(message, t.Literal):
        fail("the message must be a string", message.span)

    values: tuple[ir.Value, ...] = ()
    if len(call.args) > 1:
        values = tuple(flatten(lower(call.arg(1), call.frame), call.arg(1).span))

    call.emit("log_msg", ir.Text(str(message.value)), ir.Vector(values))


def _assertion(call: Call) -> None:
    call.emit(call.name, call.value(0))


def _truncate(call: Call) -> None:
    call.emit("truncate", call.value(0))


def _verify(call: Call) -> None:
    condition, error = (
        as_value(item, call.span) for item in lower_all((call.arg(0), call.arg(1)), call.frame)
    )
    call.frame.emit(ir.Verify(condition, error, call.span))


def _checksum(call: Call) -> None:
    """`verify_checksum(condition, data, checksum, algorithm)` and its three sisters."""
    condition, data, target = (lower(call.arg(index), call.frame) for index in range(3))
    if not isinstance(target, ir.FieldRef):
        fail("the target needs a field for the checksum", call.arg(2).span)

    inputs = tuple(flatten(data, call.arg(1).span))
    for value in inputs:
        if not isinstance(value, ir.FieldRef | ir.Num) or value.type == ty.INT:
            fail(
                "the target computes checksums of fields and of numbers with a width only",
                call.arg(1).span,
            )

    call.frame.builder.switch.checksums.append(
        ir.Checksum(
            call.name.startswith("verify"),
            condition=as_value(condition, call.span),
            inputs=inputs,
            target=target,
            algorithm=_algorithm(call.arg(3)),
            payload=call.name.endswith("_with_payload"),
            span=call.span,
        )
    )


Handler = tuple[tuple[str, ...], Callable[[Call], "ir.Operand | None"]]

FUNCTIONS: dict[str, Handler] = {
    "mark_to_drop": (PIPELINES, _mark_to_drop),
    "hash": (PIPELINES, _hash),
    "random": (PIPELINES, _random),
    "digest": (PIPELINES, _digest),
    "truncate": (PIPELINES, _truncate),
    "clone": (PIPELINES, _clone),
    "clone_preserving_field_list": (PIPELINES, _clone),
    "clone3": (PIPELINES, _clone),
    "resubmit": (("ingress",), _again_with),
    "recirculate": (("egress",), _again_with),
    "resubmit_preserving_field_list": (("ingress",), _preserving),
    "recirculate_preserving_field_list": (("egress",), _preserving),
    "log_msg": (("parser", *PIPELINES), _log_msg),
    "assert": (("parser", *PIPELINES), _assertion),
    "assume": (("parser", *PIPELINES), _assertion),
    "verify": (("parser",), _verify),
    "verify_checksum": (("verify",), _checksum),
    "verify_checksum_with_payload": (("verify",), _checksum),
    "update_checksum": (("compute",), _checksum),
    "update_checksum_with_payload": (("compute",), _checksum),
}


# Methods


def _extract(call: Call) -> None:
    arg = call.args[0]
    if arg is None:
        header_type = call.types[0]
        if header_type == ty.DONT_CARE:
            fail("the type of the header to skip is missing: write extract<T>(_)", call.span)

        call.frame.emit(ir.Advance(number(ty.width_of(header_type), ty.Bits(32)), call.span))
        return

    place = lower(arg, call.frame)
    if (
        not isinstance(place, ir.HeaderAt | ir.NextAt | ir.NextMember)
        or place.type.kind != "header"
    ):
        fail("the target extracts to named headers and to 'next' of a stack only", arg.span)

    length = call.value(1) if len(call.args) > 1 else None
    has_varbit = any(isinstance(item.type, ty.Varbit) for item in place.type.fields)
    if has_varbit != (length is not None):
        wanted = "needs" if has_varbit else "has no varbit field for"
        fail(f"header {place.type.name} {wanted} the length of its varbit field", call.span)

    call.frame.emit(ir.Extract(place, length, call.span))


def _lookahead(call: Call) -> ir.Operand:
    result, _ = _look(call.types[0], 0, call)
    return result


def _look(type_: ty.Type, offset: int, call: Call) -> tuple[ir.Operand, int]:
    """Copy what lies ahead into temporaries; return them and the bits that they took."""
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
        case (ty.Bits() | ty.Simple("bool")) as plain:
            bits = ty.width_of(plain)
            ahead: ir.Value = ir.Lookahead(offset, bits, type_)
            copy = call.frame.temporary(type_, call.span, "ahead")
            assert isinstance(copy, ir.FieldRef)
            call.frame.emit(ir.Assign(copy, ahead, call.span))

            return copy, bits

    return fail(f"the target cannot look ahead for {ty.show(type_)}", call.span)


def _advance(call: Call) -> None:
    call.frame.emit(ir.Advance(call.value(0), call.span))


def _emit(call: Call) -> None:
    """Only the order of the headers matters: the target skips those that are not valid."""
    call.frame.builder.switch.emits.extend(headers_of(lower(call.arg(0), call.frame), call.span))


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
    array = ir.Named("register_array", _owner(call).name)
    _to_field(call, 0, lambda field: call.emit("register_read", field, array, index))


def _register_write(call: Call) -> None:
    index, value = (
        as_value(item, call.span) for item in lower_all((call.arg(0), call.arg(1)), call.frame)
    )
    call.emit("register_write", ir.Named("register_array", _owner(call).name), index, value)


def _count(call: Call) -> None:
    call.emit("count", ir.Named("counter_array", _owner(call).name), call.value(0))


def _nothing(call: Call) -> None:
    """A direct counter counts by itself when its table is applied."""


def _execute_meter(call: Call) -> None:
    index = call.value(0)
    array = ir.Named("meter_array", _owner(call).name)
    _to_field(call, 1, lambda field: call.emit("execute_meter", array, index, field))


def _meter_read(call: Call) -> None:
    """The target runs a direct meter when its table is applied, and always writes to the same
    field.
    """
    place = None if call.args[0] is None else lower(call.arg(0), call.frame)
    if not isinstance(place, ir.FieldRef):
        fail("the target needs a field for the colour of a direct meter", call.span)

    targets = call.frame.builder.switch.meter_targets
    name = _owner(call).name
    if targets.setdefault(name, place) != place:
        fail(f"direct meter '{name}' is read into different fields", call.span)


def _owner(call: Call) -> ir.Object:
    assert call.object is not None
    return call.object


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
