"""The entries that a program declares, as the P4Runtime request that would insert them."""

from __future__ import annotations

from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2

from ofan_p4.compiler.midend.flow import Entry, Table, tables_of
from ofan_p4.compiler.midend.switch import Switch
from ofan_p4.compiler.semantics import types as ty

RANKED = ("ternary", "range", "optional")


def initial_entries(switch: Switch, info: p4info_pb2.P4Info) -> p4runtime_pb2.WriteRequest:
    """Return the INSERT of every declared entry of the tables that the control plane sees."""
    request = p4runtime_pb2.WriteRequest()
    about = {table.preamble.name: table for table in info.tables}
    actions = {action.preamble.name: action for action in info.actions}

    for table in tables_of((*switch.ingress, *switch.egress)):
        if table.name not in about:
            continue

        # P4Runtime's largest priority wins, the target's smallest rank.
        highest = max((entry.priority for entry in table.entries), default=0) + 1
        has_ranks = any(key.match_kind in RANKED for key in table.keys)
        for entry in table.entries:
            # No message can name a hidden action.
            if entry.action.name not in actions:
                continue

            update = request.updates.add(type=p4runtime_pb2.Update.INSERT)
            message = update.entity.table_entry
            message.table_id = about[table.name].preamble.id
            priority = entry.own_priority
            message.priority = (
                (highest - entry.priority if priority is None else priority) if has_ranks else 0
            )
            _matches(message, about[table.name], table, entry)
            _action(message.action.action, actions[entry.action.name], entry)

    return request


def _matches(
    message: p4runtime_pb2.TableEntry, about: p4info_pb2.Table, table: Table, entry: Entry
) -> None:
    for declared, key, match in zip(about.match_fields, table.keys, entry.matches, strict=True):
        width = ty.width_of(key.operand.type)
        full = (1 << width) - 1
        everything = full if key.match_kind == "range" else 0
        # A match of everything is left out.
        if key.match_kind != "exact" and (match.value, match.second) == (0, everything):
            continue

        field = message.match.add(field_id=declared.id)
        match key.match_kind:
            case "exact":
                field.exact.value = _bytes(match.value)
            case "optional":
                field.optional.value = _bytes(match.value)
            case "lpm":
                field.lpm.value = _bytes(match.value)
                field.lpm.prefix_len = match.second.bit_count()
            case "range":
                field.range.low, field.range.high = _bytes(match.value), _bytes(match.second)
            case _:
                field.ternary.value, field.ternary.mask = _bytes(match.value), _bytes(match.second)


def _action(message: p4runtime_pb2.Action, declared: p4info_pb2.Action, entry: Entry) -> None:
    message.action_id = declared.preamble.id
    widths = (width for _, width in entry.action.params)
    for param, value, width in zip(declared.params, entry.args, widths, strict=True):
        message.params.add(param_id=param.id, value=_bytes(value & ((1 << width) - 1)))


def _bytes(value: int) -> bytes:
    """Return the shortest string of a number, as P4Runtime wants it."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")
