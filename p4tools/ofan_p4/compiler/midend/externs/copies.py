"""Packets that go round again or leave twice, and the lists of fields that stay with them."""

from __future__ import annotations

from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.expressions import constant
from ofan_p4.compiler.midend.externs.call import Call, flatten
from ofan_p4.compiler.midend.layout import SCALARS, STANDARD_METADATA, header_field
from ofan_p4.compiler.midend.operands import number
from ofan_p4.compiler.midend.switch import Switch
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.diagnostics import Span


def clone(call: Call) -> None:
    """`clone(type, session[, field list])`."""
    kind = call.arg(0)
    if not isinstance(kind, t.Literal):
        fail("the type of the clone must be known at compile time", kind.span)

    name, pipeline = CLONES[str(kind.value)]
    if call.frame.where != pipeline:
        fail(f"CloneType.{kind.value} is possible in {pipeline} only", kind.span)

    kept = _data_list if call.name == "clone3" else _field_list
    list_id = kept(call, 2) if len(call.args) > 2 else _empty_list(call)
    call.emit(name, call.value(1), number(list_id, ty.Bits(32)))


CLONES = {
    "I2E": ("clone_ingress_pkt_to_egress", "ingress"),
    "E2E": ("clone_egress_pkt_to_egress", "egress"),
}


def _field_list(call: Call, index: int) -> int:
    """Return the target's id of a field list.

    Ids start at 1, since 0 means that nothing is to be done.
    """
    chosen = constant(call.arg(index), call.frame, "the index of the field list")
    lists = call.frame.builder.switch.field_lists
    # An index that no annotation has is a list without fields.
    lists.setdefault(chosen, [])

    return list(lists).index(chosen) + 1


def _empty_list(call: Call) -> int:
    lists = call.frame.builder.switch.field_lists
    # -1 is no index of @field_list, which goes from 0 to 255.
    lists.setdefault(-1, [])
    return list(lists).index(-1) + 1


def preserving(call: Call) -> None:
    """`resubmit_preserving_field_list(index)` and its sister for recirculate."""
    call.emit(
        call.name.removesuffix("_preserving_field_list"), number(_field_list(call, 0), ty.Bits(32))
    )


def _data_list(call: Call, index: int) -> int:
    """Return the id of a list of the fields that an old call names."""
    fields = []
    for value in flatten(call.operand(index), call.arg(index).span):
        if not isinstance(value, ir.FieldRef) or value.header not in (SCALARS, STANDARD_METADATA):
            fail(f"'{call.name}' can preserve fields of metadata only", call.arg(index).span)

        fields.append(value)

    lists = call.frame.builder.switch.field_lists
    # A negative index that is not taken: -1 is the empty list, and lists only grow.
    lists[-len(lists) - 2] = fields
    return len(lists)


def again_with(call: Call) -> None:
    """`resubmit(data)` and `recirculate(data)`, as programs wrote them before 2021."""
    call.emit(call.name, number(_data_list(call, 0), ty.Bits(32)))


def collect_field_lists(
    metadata: ir.Operand,
    struct: ty.Type,
    span: Span,
    switch: Switch,
    outer: tuple[int, ...] = (),
) -> None:
    """Fill the field lists that the annotations @field_list of the user metadata describe.

    The fields of a struct are in the lists of the struct as well: `outer`.
    """
    if not isinstance(struct, ty.Struct) or not isinstance(metadata, ir.StructAt | ir.HeaderAt):
        return

    for item in struct.fields:
        part = (
            metadata.item(item.name)
            if isinstance(metadata, ir.StructAt)
            else header_field(metadata, item.name)
        )
        lists = tuple(dict.fromkeys((*outer, *item.field_lists)))
        if isinstance(item.type, ty.Struct):
            collect_field_lists(part, item.type, span, switch, lists)
        elif lists:
            fields = [value for value in flatten(part, span) if isinstance(value, ir.FieldRef)]
            for index in lists:
                switch.field_lists.setdefault(index, []).extend(fields)
