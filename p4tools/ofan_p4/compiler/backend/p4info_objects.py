"""Counters, meters, registers and action profiles of a program in its P4Info."""

from __future__ import annotations

from typing import Any

from p4.config.v1 import p4info_pb2

from ofan_p4.compiler.backend.p4info_annotations import limit
from ofan_p4.compiler.backend.p4info_draft import Draft
from ofan_p4.compiler.midend.flow import Object
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.annotations import string_annotation
from ofan_p4.compiler.syntax.nodes import Annotations

COUNTER_UNITS = {
    "packets": p4info_pb2.CounterSpec.PACKETS,
    "bytes": p4info_pb2.CounterSpec.BYTES,
    "packets_and_bytes": p4info_pb2.CounterSpec.BOTH,
}
METER_UNITS = {"packets": p4info_pb2.MeterSpec.PACKETS, "bytes": p4info_pb2.MeterSpec.BYTES}
# P4Runtime has one message for both, with a flag for selectors.
KIND_OF = {"action_selector": "action_profile"}
"""Extern types whose kind in P4Runtime has another name."""


def add_object(draft: Draft, item: Object) -> None:
    """Describe an object to the control plane."""
    match item.kind:
        case "counter" | "direct_counter":
            _counter(draft, item)
        case "meter" | "direct_meter":
            _meter(draft, item)
        case "register":
            _register(draft, item)
        case "action_profile" | "action_selector":
            _action_profile(draft, item)


def _counter(draft: Draft, item: Object) -> None:
    message: p4info_pb2.Counter | p4info_pb2.DirectCounter | None
    if item.kind == "counter":
        message = draft.info.counters.add(size=int(item.args["size"]))
        _index_type(draft, item, 0, message)
    else:
        message = _direct(draft, item, draft.info.direct_counters)

    if message is not None:
        message.spec.unit = COUNTER_UNITS[str(item.args["type"])]
        draft.preamble(message.preamble, item.kind, item.name, item.source.annotations)


def _meter(draft: Draft, item: Object) -> None:
    message: p4info_pb2.Meter | p4info_pb2.DirectMeter | None
    if item.kind == "meter":
        message = draft.info.meters.add(size=int(item.args["size"]))
        _index_type(draft, item, 0, message)
    else:
        message = _direct(draft, item, draft.info.direct_meters)

    if message is not None:
        message.spec.unit = METER_UNITS[str(item.args["type"])]
        draft.preamble(message.preamble, item.kind, item.name, item.source.annotations)


def _direct(draft: Draft, item: Object, messages: Any) -> Any:
    """Add a direct counter or meter, but None where no visible table has it."""
    bound = (table for table in draft.tables if item in (table.counters, table.meters))
    table = next(bound, None)
    if table is None:
        return None

    return messages.add(direct_table_id=draft.symbols.id_of("table", table.name))


def _register(draft: Draft, item: Object) -> None:
    assert isinstance(item.source.type, ty.Extern)
    message = draft.info.registers.add(size=int(item.args["size"]))
    draft.preamble(message.preamble, item.kind, item.name, item.source.annotations)
    # register<T, I>: the cells first, then the index, which is a parameter since 2020.
    message.type_spec.CopyFrom(draft.spec(item.source.type.args[0]))
    _index_type(draft, item, 1, message)


def _index_type(
    draft: Draft,
    item: Object,
    position: int,
    message: p4info_pb2.Counter | p4info_pb2.Meter | p4info_pb2.Register,
) -> None:
    """Name the type of the index where the architecture makes it a parameter."""
    assert isinstance(item.source.type, ty.Extern)
    if len(item.source.type.args) <= position:
        return

    spec = draft.spec(item.source.type.args[position])
    if spec.HasField("new_type"):
        message.index_type_name.name = spec.new_type.name


def _action_profile(draft: Draft, item: Object) -> None:
    message = draft.info.action_profiles.add(size=int(item.args["size"]))
    message.with_selector = item.kind == "action_selector"
    annotations = item.source.annotations
    special = ("max_group_size", "selector_size_semantics", "max_member_weight")
    draft.preamble(
        message.preamble,
        kind="action_profile",
        name=item.name,
        annotations=annotations,
        skip=special,
    )

    users = (table for table in draft.tables if table.implementation is item)
    message.table_ids.extend(draft.symbols.id_of("table", table.name) for table in users)
    if message.with_selector:
        _selector(message, annotations)


def _selector(message: p4info_pb2.ActionProfile, annotations: Annotations) -> None:
    message.max_group_size = limit(annotations, "max_group_size")
    semantics = (string_annotation(annotations, "selector_size_semantics") or "").lower()
    if semantics == "sum_of_members":
        message.sum_of_members.max_member_weight = limit(annotations, "max_member_weight")
    elif semantics == "sum_of_weights":
        message.sum_of_weights.SetInParent()
