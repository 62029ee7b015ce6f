"""The extern functions."""

from __future__ import annotations

from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.assignments import as_value, assign
from ofan_p4.compiler.midend.externs.call import (
    PIPELINES,
    Call,
    Handler,
    algorithm_of,
    as_fields,
    flatten,
    freeze_value,
    to_field,
)
from ofan_p4.compiler.midend.externs.copies import again_with, clone, preserving
from ofan_p4.compiler.midend.layout import STANDARD_METADATA
from ofan_p4.compiler.midend.operands import is_signed, number
from ofan_p4.compiler.midend.switch import Calculation, Checksum, Digest
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.annotations import string_annotation
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.diagnostics import CompileWarning

EMPTY_RANGE = "empty_range"


def _mark_to_drop(call: Call) -> None:
    if not call.args:
        call.emit("mark_to_drop", ir.Named("header", STANDARD_METADATA))
        return

    metadata = call.operand(0)
    assert isinstance(metadata, ir.StructAt)
    # The usual argument; BMv2's primitive knows where the fields are.
    if isinstance(metadata.items[0], ir.FieldRef) and metadata.items[0].header == STANDARD_METADATA:
        call.emit("mark_to_drop", ir.Named("header", STANDARD_METADATA))
        return

    # A copy of the standard metadata: the work of BMv2's primitive, by hand. 511 is its drop port.
    for field, value in (("egress_spec", 511), ("mcast_grp", 0)):
        target = metadata.item(field)
        assign(target, number(value, target.type), call.span, call.frame)


def _hash(call: Call) -> None:
    """`result = base + hash(data) % max`, or base where max is 0."""
    algorithm = algorithm_of(call.arg(1))
    base_value = call.value(2)
    size_value = call.value(4)

    # No hash is needed then.
    if isinstance(size_value, ir.Num) and size_value.value == 0:
        to_field(call, 0, lambda field: assign(field, base_value, call.span, call.frame))
        return

    inputs = as_fields(call.operand(3), call.arg(3).span, call.frame)
    switch = call.frame.builder.switch
    name = f"calc_{len(switch.calculations)}"
    switch.calculations.append(Calculation(name, algorithm, inputs, call.span))
    calculation = ir.Named("calculation", name)
    step = "modify_field_with_hash_based_offset"
    to_field(call, 0, lambda field: call.emit(step, field, base_value, calculation, size_value))


def _random(call: Call) -> None:
    low, high = call.value(1), call.value(2)
    if isinstance(low, ir.Num) and isinstance(high, ir.Num) and low.value > high.value:
        message = (
            f"random() draws from {low.value} to {high.value}, where there is no number: it"
            " changes nothing here, and BMv2 does not say what it does; put the lower limit first"
        )
        switch = call.frame.builder.switch
        switch.warnings.append(CompileWarning(EMPTY_RANGE, message, call.span))

    to_field(call, 0, lambda field: call.emit("modify_field_rng_uniform", field, low, high))


def _digest(call: Call) -> None:
    """Emit a digest; the target sends it when the pipeline ends, so its fields are copied now."""
    data = call.operand(1)
    fields = tuple(
        as_value(freeze_value(value, call.span, call.frame), call.span)
        for value in as_fields(data, call.arg(1).span, call.frame)
    )

    type_ = call.arg(1).type
    digests = call.frame.builder.switch.digests
    # The control plane's name: that of the struct, as its @name may say.
    name = f"digest_{len(digests)}"
    if isinstance(type_, ty.Struct):
        name = string_annotation(type_.annotations, "name") or type_.name

    digests.append(Digest(name, type_, fields, call.span))
    # Learn lists are numbered from 1.
    call.emit("generate_digest", call.value(0), number(len(digests), ty.Bits(32)))


def _log_msg(call: Call) -> None:
    message = call.arg(0)
    if not isinstance(message, t.Literal):
        fail("the message must be a string", message.span)

    values: tuple[ir.Value, ...] = ()
    logged: tuple[ty.Type, ...] = ()
    if len(call.args) > 1:
        values = tuple(flatten(call.operand(1), call.arg(1).span))
        logged = _members(call.arg(1).type)

    first, *pieces = str(message.value).split("{}")
    # BMv2 would end at the first packet.
    if len(pieces) != len(logged):
        fail(f"the message has {len(pieces)} {{}} for {len(logged)} values", call.span)

    shown = "".join(f"{_shown(type_)}{rest}" for type_, rest in zip(logged, pieces, strict=True))
    call.emit("log_msg", ir.Text(first + shown), ir.Vector(values))


def _members(type_: ty.Type) -> tuple[ty.Type, ...]:
    match ty.underlying(type_):
        case ty.Tuple(elements):
            return elements
        case ty.Record(fields) | ty.Struct(fields=fields):
            return tuple(item.type for item in fields)
        case ty.Stack(element, size):
            return (element,) * size
        case _:
            return (type_,)


def _shown(type_: ty.Type) -> str:
    """Return the text for a value in a message: a `{}` for each number that it is made of."""
    match ty.underlying(type_):
        case ty.Record(fields) | ty.Struct(fields=fields):
            return f"({','.join(f'{item.name}:{_shown(item.type)}' for item in fields)})"
        case ty.Tuple() | ty.Stack():
            return f"({','.join(map(_shown, _members(type_)))})"
        case _:
            return "{}"


def _assertion(call: Call) -> None:
    call.emit(call.name, call.value(0))


def _truncate(call: Call) -> None:
    call.emit("truncate", call.value(0))


def _verify(call: Call) -> None:
    call.frame.emit(ir.Verify(call.value(0), call.value(1), call.span))


def _checksum(call: Call) -> None:
    """`verify_checksum(condition, data, checksum, algorithm)` and its three sisters."""
    condition, data, target = (call.operand(index) for index in range(3))
    if not isinstance(target, ir.FieldRef):
        fail("the target needs a field for the checksum", call.arg(2).span)

    inputs = tuple(
        piece for value in flatten(data, call.arg(1).span) for piece in _unwidened(value)
    )
    for value in inputs:
        if not isinstance(value, ir.FieldRef | ir.Num) or value.type == ty.INT:
            fail(
                "the target computes checksums of fields and of numbers with a width only",
                call.arg(1).span,
            )

    call.frame.builder.switch.checksums.append(
        Checksum(
            call.name.startswith("verify"),
            condition=as_value(condition, call.span),
            inputs=inputs,
            target=target,
            algorithm=algorithm_of(call.arg(3)),
            payload=call.name.endswith("_with_payload"),
            span=call.span,
        )
    )


def _unwidened(value: ir.Value) -> tuple[ir.Value, ...]:
    """Return a widened field as zeros and the field: no step can run where checksums are."""
    match value:
        case ir.Widened(ir.FieldRef() as stored, type_) if not is_signed(type_):
            zeros = ty.width_of(type_) - ty.width_of(stored.type)
            return (number(0, ty.Bits(zeros)), stored)

    return (value,)


# Each with the blocks in which it may be called.
FUNCTIONS: dict[str, Handler] = {
    "mark_to_drop": (PIPELINES, _mark_to_drop),
    "hash": (PIPELINES, _hash),
    "random": (PIPELINES, _random),
    "digest": (PIPELINES, _digest),
    "truncate": (PIPELINES, _truncate),
    "clone": (PIPELINES, clone),
    "clone_preserving_field_list": (PIPELINES, clone),
    "clone3": (PIPELINES, clone),
    "resubmit": (("ingress",), again_with),
    "recirculate": (("egress",), again_with),
    "resubmit_preserving_field_list": (("ingress",), preserving),
    "recirculate_preserving_field_list": (("egress",), preserving),
    "log_msg": (("parser", *PIPELINES), _log_msg),
    "assert": (("parser", *PIPELINES), _assertion),
    "assume": (("parser", *PIPELINES), _assertion),
    "verify": (("parser",), _verify),
    "verify_checksum": (("verify",), _checksum),
    "verify_checksum_with_payload": (("verify",), _checksum),
    "update_checksum": (("compute",), _checksum),
    "update_checksum_with_payload": (("compute",), _checksum),
}
