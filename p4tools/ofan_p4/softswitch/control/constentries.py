"""Entries and default actions that the JSON itself declares."""

from __future__ import annotations

from collections.abc import Sequence

from ofan_p4.softswitch.base.errors import EntryError, PipelineError
from ofan_p4.softswitch.codegen.program import Action, Json, KeyField, Program, TableSpec, hex_int
from ofan_p4.softswitch.state.tables import Match, Table


def install_constants(program: Program, tables: Sequence[Table]) -> None:
    """Give every table the entries and the default action of its declaration."""
    for table in tables:
        spec = table.spec
        try:
            if spec.default_action is not None:
                data = _arguments(program.actions[spec.default_action], spec.default_data)
                table.declare_default(spec.default_action, data)

            _install_entries(program, table)
        except EntryError as error:
            raise PipelineError(f"table {spec.name!r}: {error}") from None


def _install_entries(program: Program, table: Table) -> None:
    entries = table.spec.entries
    lowest = max((int(entry.get("priority", 0)) for entry in entries), default=0)
    for item in entries:
        action = program.actions[item["action_entry"]["action_id"]]
        data = tuple(
            hex_int(value, f"table {table.spec.name}")
            for value in item["action_entry"]["action_data"]
        )

        priority = (
            # In the JSON 1 is the highest priority; in P4Runtime, and here, the largest number is.
            # Our compiler adds the program's own priority.
            int(item.get("p4runtime_priority", lowest + 1 - int(item.get("priority", 0))))
            if table.kind in ("masked", "rows")
            else 0
        )
        match = _match(table.spec, item["match_key"])
        entry = table.insert(match, priority, action.id, _arguments(action, data))
        entry[2].is_const = True

    table.is_const = bool(entries)


def _arguments(action: Action, data: tuple[int, ...]) -> tuple[int, ...]:
    if len(data) != len(action.parameter_bits):
        raise PipelineError(
            f"action {action.name!r} takes {len(action.parameter_bits)} arguments,"
            f" found {len(data)}"
        )

    return tuple(
        value & (1 << bits) - 1 for value, bits in zip(data, action.parameter_bits, strict=True)
    )


def _match(spec: TableSpec, key: Json) -> Match:
    if len(key) != len(spec.key):
        raise PipelineError(
            f"table {spec.name!r}: an entry has {len(key)} key fields, the table {len(spec.key)}"
        )

    return tuple(_pair(field, item) for field, item in zip(spec.key, key, strict=True))


def _pair(field: KeyField, item: Json) -> tuple[int, int]:
    full = (1 << field.bits) - 1
    match item["match_type"]:
        case "lpm":
            return hex_int(item["key"], field.name), int(item["prefix_length"])
        case "ternary":
            mask = hex_int(item["mask"], field.name) & full
            return hex_int(item["key"], field.name) & mask, mask
        case "range":
            return hex_int(item["start"], field.name), hex_int(item["end"], field.name)
        case "valid":
            return int(bool(item["key"])), 0
        case _:
            return hex_int(item["key"], field.name), full if field.kind in (
                "optional",
                "ternary",
            ) else 0
