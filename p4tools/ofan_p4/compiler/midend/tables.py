"""Tables: their keys as fields, their actions as flow, and their application."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.arguments import bind, copy_out
from ofan_p4.compiler.midend.assignments import as_value, freeze
from ofan_p4.compiler.midend.expressions import constant, lower_all, size_of
from ofan_p4.compiler.midend.flow import (
    Action,
    Apply,
    Entry,
    Flow,
    Key,
    Label,
    Match,
    Object,
    Table,
    close,
)
from ofan_p4.compiler.midend.frame import Bindings, Frame
from ofan_p4.compiler.midend.objects import make_object
from ofan_p4.compiler.midend.operands import is_signed, reduce_to, stored_ranges
from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.annotations import string_annotation
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.diagnostics import CompileWarning, Span

DEFAULT_SIZE = 1024
MATCH_KINDS = ("exact", "lpm", "ternary", "range", "optional")

Cases = tuple[tuple[tuple[Action, ...], Flow], ...]


def apply_table(
    node: td.Table,
    span: Span,
    frame: Frame,
    hit: Flow = (),
    miss: Flow = (),
    cases: Cases = (),
    default: Flow = (),
) -> None:
    """Emit the application of a table.

    The branches go by hit and miss, or by the action that ran.
    """
    # The first application makes the table, so tables that are never applied do not exist.
    table = frame.tables.get(node)
    if table is None:
        table = frame.tables[node] = _table(node, frame)
    else:
        _reapply(table, node, span, frame)

    frame.emit(
        Apply(
            table, hit, miss, cases=cases, default=default, by_action=not (hit or miss), span=span
        )
    )


def _reapply(table: Table, node: td.Table, span: Span, frame: Frame) -> None:
    """A second application must look up the very same fields.

    The back end decides whether it is possible at all.
    """
    if _keys(node, frame)[0] != table.keys:
        fail(f"table '{node.name}' is applied more than once, which the target cannot do", span)


def table_actions(node: td.Table, frame: Frame) -> tuple[Action, ...]:
    """Return the actions of a table in the order of its list."""
    return tuple(_action(entry, frame) for entry in node.actions)


def _table(node: td.Table, frame: Frame) -> Table:
    name = frame.qualify(node.name, node.annotations)
    if name in frame.builder.table_names:
        fail(f"there is more than one table '{name}'", node.span)

    frame.builder.table_names.add(name)
    keys, selectors = _keys(node, frame)
    frame.builder.switch.warnings += map(_bmv2_warning, filter(_is_partial_lpm, keys))
    actions = table_actions(node, frame)
    by_entry = dict(zip(node.actions, actions, strict=True))
    size = size_of(node.size, frame, "'size'") if node.size else 0

    return Table(
        name,
        source=node,
        keys=keys,
        selectors=selectors,
        actions=actions,
        default=by_entry[node.default.entry],
        default_args=_arguments(node.default, frame),
        entries=_entries(node, by_entry, frame),
        size=size or DEFAULT_SIZE,
        implementation=_object(node.implementation, frame),
        counters=_object(node.counters, frame),
        meters=_object(node.meters, frame),
    )


def _object(instance: td.Instance | None, frame: Frame) -> Object | None:
    if instance is None:
        return None

    instance_object = frame.bindings.get(instance)
    if isinstance(instance_object, Object):
        return instance_object

    return make_object(instance, frame)


# Keys


def _keys(node: td.Table, frame: Frame) -> tuple[tuple[Key, ...], tuple[ir.Value, ...]]:
    keys = []
    selectors = []
    values = lower_all(tuple(key.expression for key in node.keys), frame)
    for key, value in zip(node.keys, values, strict=True):
        operand = _key_operand(as_value(value, key.span), key, frame)
        if key.match_kind == "selector":
            selectors.append(operand)
        elif key.match_kind in MATCH_KINDS:
            keys.append(Key(key.match_kind, operand, key.name, key))
        else:
            fail(f"the target does not know the match kind '{key.match_kind}'", key.span)

    return tuple(keys), tuple(selectors)


def _key_operand(operand: ir.Value, key: td.Key, frame: Frame) -> ir.Value:
    """Return a field or validity bit.

    Anything else is computed into a temporary before the lookup.
    """
    match operand:
        case ir.FieldRef():
            return operand
        # BMv2 matches on `$valid$` like on a field, but hashes fields only.
        case ir.Valid(ir.HeaderAt()) if key.match_kind != "selector":
            return operand
        # `freeze` leaves constants as they are, but a key must be a field.
        case ir.Num() | ir.RunTime() | ir.Flag():
            copy = frame.temporary(key.expression.type, key.span, "key")
            assert isinstance(copy, ir.FieldRef)
            frame.emit(ir.Assign(copy, operand, key.span))

            return copy

    return as_value(freeze(operand, key.span, frame), key.span)


PARTIAL_BYTES = "bmv2_lpm"


def _is_partial_lpm(key: Key) -> bool:
    return key.match_kind == "lpm" and ty.width_of(key.operand.type) % 8 != 0


def _bmv2_warning(key: Key) -> CompileWarning:
    width = ty.width_of(key.operand.type)
    message = (
        f"lpm key '{key.name}' has {width} bits, which are no whole bytes: BMv2 counts the bits"
        " that fill them as part of each prefix, and takes wrong entries or does not start;"
        f" a key of {-(-width // 8) * 8} bits is right on both switches"
    )
    return CompileWarning(PARTIAL_BYTES, message, key.source.span)


# Actions


def _action(entry: td.ActionEntry, frame: Frame) -> Action:
    """Return an action; one without bound arguments is shared by all tables of its control."""
    # With bound arguments, the body differs from table to table.
    shared = not entry.args
    if shared and entry.action in frame.actions:
        return frame.actions[entry.action]

    made = _make_action(entry, frame)
    if shared:
        frame.actions[entry.action] = made

    return made


def _make_action(entry: td.ActionEntry, frame: Frame) -> Action:
    action = entry.action
    label = Label("return")

    with frame.collect(in_action=True, end=label, loop=None) as inner:
        bound = bind(
            action.bound_params, args=entry.args, span=entry.span, frame=inner, body=action.body
        )
        run_time: Bindings = {
            param: _run_time(index, param) for index, param in enumerate(action.runtime_params)
        }
        with inner.collect(
            bindings={**frame.bindings, **bound.bindings, **run_time},
            copies=(*bound.copies, *frame.copies),
        ) as body:
            body.lower_body(action.body)

        inner.emit(*close(label, body.out))
        copy_out(bound.copies, entry.span, inner)

    name = frame.action_name(action)
    # The same action in several tables is a single action to the control plane.
    if frame.builder.action_names.setdefault(name, action) is not action:
        fail(f"there is more than one action '{name}'", action.span)

    params = tuple(
        (string_annotation(param.annotations, "name") or param.name, ty.width_of(param.type))
        for param in action.runtime_params
    )

    return Action(name, params, flow=tuple(inner.out), span=action.span, source=action)


def _run_time(index: int, param: ty.Parameter) -> ir.Value:
    """Return an argument from the control plane, which arrives as an unsigned number."""
    value = ir.RunTime(index, param.type)
    return reduce_to(value, param.type) if is_signed(param.type) else value


def _arguments(choice: td.ActionChoice, frame: Frame) -> tuple[int, ...]:
    return tuple(constant(arg, frame, "an argument of an action") for arg in choice.args)


# Entries


def _entries(
    node: td.Table, actions: dict[td.ActionEntry, Action], frame: Frame
) -> tuple[Entry, ...]:
    if not node.entries:
        return ()

    matched = [key for key in node.keys if key.match_kind != "selector"]
    made = []
    # The order of the program is the rank, unless the entry has its own.
    for priority, entry in enumerate(node.entries, start=1):
        if entry.priority is not None:
            priority = constant(entry.priority, frame, "a priority")

        choices = [
            _matches(written, key, frame) for written, key in zip(entry.keys, matched, strict=True)
        ]
        # A range across zero is two entries of the target, which never match the same.
        made += [
            Entry(
                matches,
                action=actions[entry.choice.entry],
                args=_arguments(entry.choice, frame),
                priority=priority,
                own_priority=entry.own_priority,
                span=entry.span,
            )
            for matches in product(*choices)
        ]

    _refuse_twins(made, any(key.match_kind not in ("exact", "lpm") for key in matched))
    return tuple(made)


def _refuse_twins(entries: Sequence[Entry], have_priorities: bool) -> None:
    """Refuse two entries that match the same, with which the target does not start."""
    seen: dict[tuple[tuple[Match, ...], int], Entry] = {}
    for entry in entries:
        # Exact and lpm entries have no priority that could tell them apart.
        twin = seen.setdefault((entry.matches, entry.priority if have_priorities else 0), entry)
        if twin is not entry:
            fail(
                f"this entry matches the same as the one of line {twin.span.location.line}",
                entry.span,
            )


def _matches(written: ty.Expression, key: td.Key, frame: Frame) -> list[Match]:
    if isinstance(written, t.Range):
        low, high = (constant(bound, frame, "a key") for bound in (written.low, written.high))
        pairs = stored_ranges(low, high, key.expression.type, written.span)
        return [Match(*pair) for pair in pairs]

    return [_match(written, key, frame)]


def _match(written: ty.Expression, key: td.Key, frame: Frame) -> Match:
    width = ty.width_of(key.expression.type)
    full = (1 << width) - 1
    match written:
        case t.Everything():
            # Everything is the whole range, or a mask of zeros.
            return Match(0, full if key.match_kind == "range" else 0)
        case t.Masked(_, _, value, mask):
            bits = constant(mask, frame, "a mask") & full
            if key.match_kind == "lpm" and bits not in {
                full ^ ((1 << tail) - 1) for tail in range(width + 1)
            }:
                fail("the mask of an lpm key must be a prefix", written.span)

            return Match(constant(value, frame, "a key") & bits, bits)
        case _:
            exact = constant(written, frame, "a key") & full
            return Match(exact, exact if key.match_kind == "range" else full)
