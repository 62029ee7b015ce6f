"""The steps of a packet in words and as data: one function for each kind of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ofan_p4.softswitch.codegen.program import (
    NO_ACTION,
    USE_GROUP,
    USE_MEMBER,
    KeyField,
    Program,
    TableSpec,
)
from ofan_p4.softswitch.codegen.tracing import Point
from ofan_p4.softswitch.state.tables import needs_priority, prefix_mask

Words = tuple[str, dict[str, Any]]


def described(program: Program, point: Point, values: Sequence[Any]) -> Words:
    """Return the report of generated code at a point, in words and as data."""
    return _WORDS[point.kind](program, point, values)


def _state(_program: Program, point: Point, _values: Sequence[Any]) -> Words:
    return f"parser state {point.name}", {"state": point.name}


def _extract(_program: Program, point: Point, values: Sequence[Any]) -> Words:
    text, fields = _named(point, values, 1)
    return f"extracted {point.name} at byte {values[0]}: {text}", {
        "header": point.name,
        "offset": values[0],
        "fields": fields,
    }


def _select(_program: Program, point: Point, values: Sequence[Any]) -> Words:
    key = ", ".join(
        _shown(value, label.bits) for label, value in zip(point.labels, values, strict=True)
    )
    return (f"select ({key}): {point.name}" if key else f"transition {point.name}"), {
        "key": list(values),
        "next": point.name,
    }


def _parser_error(program: Program, _point: Point, values: Sequence[Any]) -> Words:
    name = _error_name(program, values[0])
    return f"parser error {name}", {"error": name}


def _condition(_program: Program, point: Point, values: Sequence[Any]) -> Words:
    return f"if ({point.name}): {'true' if values[0] else 'false'}", {
        "condition": point.name,
        "result": bool(values[0]),
    }


def _assign(_program: Program, point: Point, values: Sequence[Any]) -> Words:
    text, data = _named(point, values)
    return f"{point.name} = {text.removeprefix('value=')}", {"field": point.name, **data}


def _header(_program: Program, point: Point, values: Sequence[Any]) -> Words:
    return f"{point.name} is {'valid' if values[0] else 'not valid'}", {
        "header": point.name,
        "valid": bool(values[0]),
    }


def _stack(_program: Program, point: Point, values: Sequence[Any]) -> Words:
    return f"stack {point.name} has moved, next element {values[0]}", {
        "stack": point.name,
        "next": values[0],
    }


def _cell(event: str) -> Callable[[Program, Point, Sequence[Any]], Words]:
    def say(_program: Program, point: Point, values: Sequence[Any]) -> Words:
        value = _shown(values[1], point.labels[1].bits or 64)
        return f"{event} {point.name}[{values[0]}] = {value}", {
            "array": point.name,
            "index": values[0],
            "value": values[1],
        }

    return say


def _table(program: Program, point: Point, values: Sequence[Any]) -> Words:
    spec, (number, data, record), hit = point.detail, values[-2], bool(values[-1])
    key, fields = _named(point, values[:-2])
    entry = _match_words(spec, record.match, record.priority) if hit else "default entry"
    call = _action_call(program, number, data)
    looked = f"table {point.name}" + (f", key {key}" if key else "")
    said = {"table": point.name, "key": fields, "hit": hit, "entry": entry, "action": call}

    return f"{looked}: {'hit' if hit else 'miss'}, {entry} -> {call}", said


def _action(_program: Program, point: Point, values: Sequence[Any]) -> Words:
    text, data = _named(point, values)
    return f"action {point.name}({text})", {"action": point.name, "parameters": data}


def _checksum_wrong(_program: Program, point: Point, values: Sequence[Any]) -> Words:
    actual, expected = (_shown(value, point.labels[0].bits) for value in values)
    return f"checksum {point.name} is wrong: {actual}, not {expected}", {
        "field": point.name,
        "value": values[0],
        "expected": values[1],
    }


def _checksum_updated(_program: Program, point: Point, values: Sequence[Any]) -> Words:
    return f"checksum {point.name} = {_shown(values[0], point.labels[0].bits)}", {
        "field": point.name,
        "value": values[0],
    }


def _emit(_program: Program, point: Point, values: Sequence[Any]) -> Words:
    headers = [label.name for label, valid in zip(point.labels, values[:-1], strict=False) if valid]
    rest = max(0, values[-1])
    return f"deparser emits {', '.join([*headers, f'{rest} more bytes'])}", {
        "headers": headers,
        "payload_bytes": rest,
    }


def _log_msg(_program: Program, point: Point, values: Sequence[Any]) -> Words:
    text = point.name
    for value in values:
        text = text.replace("{}", str(value), 1)

    return f"log: {text}", {"message": text}


def _plain(_program: Program, point: Point, values: Sequence[Any]) -> Words:
    return point.name + (f" {values[0]}" if values else ""), {}


_WORDS: dict[str, Callable[[Program, Point, Sequence[Any]], Words]] = {
    "state": _state,
    "extract": _extract,
    "select": _select,
    "parser_error": _parser_error,
    "condition": _condition,
    "assign": _assign,
    "header": _header,
    "stack": _stack,
    "register_read": _cell("register read"),
    "register_write": _cell("register write"),
    "counter": _cell("counter"),
    "meter": _cell("meter"),
    "table": _table,
    "action": _action,
    "checksum_wrong": _checksum_wrong,
    "checksum_updated": _checksum_updated,
    "emit": _emit,
    "log_msg": _log_msg,
    **dict.fromkeys(
        (
            "assert",
            "clone",
            "drop",
            "exit",
            "generate_digest",
            "mark_to_drop",
            "recirculate",
            "resubmit",
            "truncate",
        ),
        _plain,
    ),
}


def _error_name(program: Program, number: int) -> str:
    names = {value: name for name, value in program.errors.items()}
    return names.get(number, str(number))


def _action_call(program: Program, number: int, data: Sequence[int]) -> str:
    """Return the text of an entry's choice: `action(name=value, ...)`, a member or a group."""
    if number == USE_GROUP and data[0] < 0:
        return "a one-shot's group"
    if number in (USE_MEMBER, USE_GROUP):
        return f"{'member' if number == USE_MEMBER else 'group'} {data[0]}"
    if number == NO_ACTION:
        return "no action"

    action = program.actions[number]
    named = zip(action.parameter_names, action.parameter_bits, data, strict=True)
    arguments = [f"{name}={_shown(value, bits)}" for name, bits, value in named]

    return f"{action.name}({', '.join(arguments)})"


def _shown(value: Any, bits: int) -> str:
    """Return a value as text: decimal if it is small, else hexadecimal in full width."""
    if isinstance(value, bytes):
        return f"0x{value.hex()}" if value else "empty"
    if bits <= 1 or not isinstance(value, int) or isinstance(value, bool):
        return str(int(value)) if isinstance(value, (int, bool)) else str(value)
    if 0 <= value < 10 or value < 0:
        return str(value)

    return f"0x{value:0{(bits + 3) // 4}x}"


def _match_words(spec: TableSpec, match: Sequence[tuple[int, int]], priority: int) -> str:
    """Return the key of an entry as its table's control plane would write it."""
    fields = [f"{key.name}={_field(key, *pair)}" for key, pair in zip(spec.key, match, strict=True)]
    return ", ".join(fields) + (f", priority {priority}" if needs_priority(spec) else "")


def _field(key: KeyField, first: int, second: int) -> str:
    match key.kind:
        case "lpm":
            return f"{_shown(first & prefix_mask(second, key.bits), key.bits)}/{second}"
        case "ternary":
            return _masked(first, second, key.bits)
        case "range":
            return f"{_shown(first, key.bits)}..{_shown(second, key.bits)}"
        case "optional":
            return _shown(first, key.bits) if second else "*"

    return _shown(first, key.bits)


def _masked(value: int, mask: int, bits: int) -> str:
    if mask in (0, (1 << bits) - 1):
        return _shown(value, bits) if mask else "*"

    return f"{_shown(value, bits)} &&& {_shown(mask, bits)}"


def _named(point: Point, values: Sequence[Any], start: int = 0) -> tuple[str, dict[str, Any]]:
    pairs = [(label, value) for label, value in zip(point.labels, values, strict=False)][start:]
    text = ", ".join(f"{label.name}={_shown(value, label.bits)}" for label, value in pairs)
    return text, {
        label.name: value.hex() if isinstance(value, bytes) else value for label, value in pairs
    }
