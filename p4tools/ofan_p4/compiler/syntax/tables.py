"""Tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ofan_p4.compiler.syntax import declaration_nodes as nd
from ofan_p4.compiler.syntax import nodes as n
from ofan_p4.compiler.syntax.annotations import annotation_list
from ofan_p4.compiler.syntax.cursor import Cursor, comma_list
from ofan_p4.compiler.syntax.expressions import (
    argument,
    expression,
    key_set,
)
from ofan_p4.diagnostics import CompileError

T = TypeVar("T")


class _TableParts:
    def __init__(self) -> None:
        self.key: tuple[nd.KeyElement, ...] | None = None
        self.actions: tuple[nd.ActionReference, ...] | None = None
        self.entries: nd.Entries | None = None
        self.properties: list[nd.Property] = []


def table(cursor: Cursor, notes: n.Annotations) -> nd.Table:
    """`table name { property* }`."""
    start = cursor.take().span
    name = cursor.expect_name("the name of the table")
    span = cursor.since(start)
    cursor.expect("{", "to begin the table")
    parts = _TableParts()

    while not cursor.accept("}"):
        _table_part(cursor, parts)

    if parts.actions is None:
        raise CompileError(f"table {name.text} has no 'actions'", name.span)

    return nd.Table(
        span,
        notes,
        name=name.text,
        name_span=name.span,
        key=parts.key or (),
        actions=parts.actions,
        entries=parts.entries,
        properties=tuple(parts.properties),
    )


def _table_part(cursor: Cursor, parts: _TableParts) -> None:
    notes = annotation_list(cursor)
    start = cursor.span
    const = cursor.accept("const")
    name = cursor.expect_name("a property of the table")

    # `key`, `actions` and `entries` have grammars of their own, the others are `name = expression`.
    if _taken(name.text, parts):
        raise CompileError(f"property '{name.text}' is given twice", name.span)

    cursor.expect("=", f"after '{name.text}'")
    match name.text:
        case "key":
            parts.key = _braced(cursor, _key_element)
        case "actions":
            parts.actions = _braced(cursor, _action_reference_line)
        case "entries":
            entries = _braced(cursor, _entry)
            parts.entries = nd.Entries(cursor.since(start), const, entries)
        case _:
            value = expression(cursor)
            cursor.expect(";", "after a property")
            parts.properties.append(
                nd.Property(cursor.since(start), notes, const=const, name=name.text, value=value)
            )


def _taken(name: str, parts: _TableParts) -> bool:
    special = {"key": parts.key, "actions": parts.actions, "entries": parts.entries}
    return special.get(name) is not None or any(
        name == present.name for present in parts.properties
    )


def _braced(cursor: Cursor, item: Callable[[Cursor], T]) -> tuple[T, ...]:
    cursor.expect("{")
    items = []
    while not cursor.accept("}"):
        items.append(item(cursor))

    # More than the grammar asks for, but harmless.
    cursor.accept(";")
    return tuple(items)


def _key_element(cursor: Cursor) -> nd.KeyElement:
    """`expression : match_kind annotations ;`."""
    start = cursor.span
    subject = expression(cursor)
    cursor.expect(":", "and how to match it")
    kind = cursor.expect_name("a match kind")
    notes = annotation_list(cursor)
    cursor.expect(";", "after a key")

    return nd.KeyElement(
        cursor.since(start), notes, expression=subject, match_kind=kind.text, match_span=kind.span
    )


def _action_reference_line(cursor: Cursor) -> nd.ActionReference:
    reference = _action_reference(cursor)
    cursor.expect(";", "after an action")
    return reference


def _action_reference(cursor: Cursor) -> nd.ActionReference:
    """`annotations name [(args)]`."""
    notes = annotation_list(cursor)
    start = cursor.span
    # `.a` is looked up at the top level ("Name resolution").
    absolute = cursor.accept(".")
    name = cursor.expect_name("the name of an action")
    args = comma_list(cursor, ")", argument) if cursor.accept("(") else ()

    return nd.ActionReference(
        cursor.since(start), notes, n.Name(name.span, name.text, absolute), args
    )


def _entry(cursor: Cursor) -> nd.Entry:
    """`[const] [priority = value :] keys : action annotations ;`."""
    start = cursor.span
    const = cursor.accept("const")
    priority = None

    # `priority` is a name like others if no `=` follows.
    if cursor.at_word("priority") and cursor.peek().text == "=":
        cursor.take()
        cursor.take()
        priority = expression(cursor)
        cursor.expect(":", "after the priority")

    keys = key_set(cursor)
    cursor.expect(":", "and the action of the entry")
    action = _action_reference(cursor)
    notes = annotation_list(cursor)
    cursor.expect(";", "after an entry")

    return nd.Entry(
        cursor.since(start), notes, const=const, priority=priority, keys=keys, action=action
    )
