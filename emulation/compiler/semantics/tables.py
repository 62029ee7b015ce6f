"""Tables: keys and their names, actions, entries and the properties of v1model."""

from __future__ import annotations

from emulation.compiler.diagnostics import CompileError, Span
from emulation.compiler.semantics import typed as t
from emulation.compiler.semantics import types as ty
from emulation.compiler.semantics.annotations import int_annotation, string_annotation
from emulation.compiler.semantics.calls import align
from emulation.compiler.semantics.constructors import constructed, is_compile_time, is_known_set
from emulation.compiler.semantics.conversion import coerce
from emulation.compiler.semantics.expressions import (
    check,
    check_as,
    check_set,
    check_value,
    is_left_value,
)
from emulation.compiler.semantics.scope import Context, fail
from emulation.compiler.semantics.type_names import constant_int
from emulation.compiler.syntax import nodes as n

ENTRY_SETS = {
    "exact": (t.Literal, t.Cast, t.Ref, t.Unary, t.Binary, t.Ternary),
    "optional": (t.Literal, t.Cast, t.Ref, t.Unary, t.Binary, t.Ternary, t.Everything),
    "lpm": (t.Literal, t.Cast, t.Ref, t.Unary, t.Binary, t.Ternary, t.Masked, t.Everything),
    "ternary": (t.Literal, t.Cast, t.Ref, t.Unary, t.Binary, t.Ternary, t.Masked, t.Everything),
    "range": (t.Literal, t.Cast, t.Ref, t.Unary, t.Binary, t.Ternary, t.Range, t.Everything),
}
"""What an entry may give for a key of each match kind."""

MAX_PRIORITY = (1 << 31) - 1
PROPERTIES = (
    "size",
    "default_action",
    "implementation",
    "counters",
    "meters",
    "support_timeout",
    "largest_priority_wins",
    "priority_delta",
)


def check_table(node: n.Table, context: Context) -> t.Table:
    """Type a table."""
    context = context.nested(place="table")
    keys = tuple(_key(key, context) for key in node.key)
    _check_kinds(node, keys)
    actions = _actions(node, context)
    default = _property(node, "default_action")
    properties = {item.name: item for item in node.properties}

    for name, item in properties.items():
        if name not in PROPERTIES:
            fail(f"table property '{name}' is not supported", item.span)

    choice = _default(node, default, actions, context)
    if choice.entry not in actions:
        actions = (*actions, choice.entry)

    return t.Table(
        node.name_span,
        name=node.name,
        keys=keys,
        actions=actions,
        default=choice,
        default_const=default is not None and default.const,
        entries=_entries(node, keys, actions, context),
        entries_const=node.entries is not None and node.entries.const,
        size=_constant_property(node, "size", ty.INT, context),
        implementation=_instance_property(
            node, "implementation", ("action_profile", "action_selector"), context
        ),
        counters=_instance_property(node, "counters", ("direct_counter",), context),
        meters=_instance_property(node, "meters", ("direct_meter",), context),
        support_timeout=_flag(node, "support_timeout", context),
        annotations=node.annotations,
    )


def _property(node: n.Table, name: str) -> n.Property | None:
    return next((item for item in node.properties if item.name == name), None)


def _constant_property(
    node: n.Table, name: str, target: ty.Type, context: Context
) -> t.Expression | None:
    item = _property(node, name)
    if item is None:
        return None

    value = check(item.value, context)
    if not (ty.is_numeric(ty.underlying(value.type)) if target == ty.INT else value.type == target):
        fail(
            f"'{name}' must be {'a number' if target == ty.INT else ty.show(target)}",
            item.value.span,
        )

    if not is_compile_time(value):
        fail(f"'{name}' must be known at compile time", item.value.span)

    return value


def _flag(node: n.Table, name: str, context: Context) -> bool:
    value = _constant_property(node, name, ty.BOOL, context)
    return isinstance(value, t.Literal) and bool(value.value)


def _instance_property(
    node: n.Table, name: str, kinds: tuple[str, ...], context: Context
) -> t.Instance | None:
    """Return the extern object that a property names or makes in place."""
    item = _property(node, name)
    if item is None:
        return None

    instance = constructed(item.value, context, f"{node.name}.{name}")
    if (
        instance is None
        or not isinstance(instance.type, ty.Extern)
        or instance.type.name not in kinds
    ):
        fail(f"'{name}' must be {' or '.join(kinds)}", item.value.span)

    if not instance.anonymous:
        return instance

    named = (string_annotation(item.annotations, "name") or instance.name).removeprefix(".")
    return t.Instance(
        instance.span,
        name=named,
        type=instance.type,
        args=instance.args,
        annotations=item.annotations,
        anonymous=True,
    )


# Keys


def _key(node: n.KeyElement, context: Context) -> t.Key:
    expression = check_value(node.expression, context)
    if node.match_kind not in context.globals.match_kinds:
        fail(f"match kind '{node.match_kind}' is not declared", node.match_span)

    match ty.underlying(expression.type):
        case ty.Bits() | ty.Enum() | ty.Simple("bool" | "error"):
            pass
        case _:
            fail(f"a key cannot have type {ty.show(expression.type)}", node.expression.span)

    name = string_annotation(node.annotations, "name") or _key_name(node.expression, context)
    if name is None:
        if node.match_kind != "selector":
            fail(
                'this key is an expression and needs an annotation @name("...")',
                node.expression.span,
            )

        name = ""

    return t.Key(
        node.span, expression, match_kind=node.match_kind, name=name, annotations=node.annotations
    )


def _key_name(node: n.Expression, context: Context) -> str | None:
    """Return the control plane's name of a key, as p4c forms it: the text of a path, with `$valid$`
    for isValid().
    """
    match node:
        case n.Name(_, name):
            return name
        case n.Member(_, base, name):
            return _member_name(base, name, context)
        case n.Index(_, base, index):
            prefix = _key_name(base, context)
            suffix = _key_name(index, context)
            return f"{prefix}[{suffix}]" if prefix and suffix else None
        case n.Slice(_, base, high, low):
            parts = [_key_name(part, context) for part in (base, high, low)]
            return f"{parts[0]}[{parts[1]}:{parts[2]}]" if all(parts) else None
        case n.Binary(_, "&", left, right):
            prefix = _key_name(left, context)
            suffix = _key_name(right, context)
            return f"{prefix} & {suffix}" if prefix and suffix else None
        case n.Call(_, n.Member(_, base, "isValid"), _, ()):
            prefix = _key_name(base, context)
            return f"{prefix}.$valid$" if prefix else None
        case n.IntLiteral(span, value):
            digits = span.text.lower().split("w")[-1].split("s")[-1]
            return f"{value:#x}" if digits.startswith("0x") else digits
        case _:
            return None


def _member_name(base: n.Expression, name: str, context: Context) -> str | None:
    """Return the name of a field, or what its annotation @name says instead."""
    prefix = _key_name(base, context)
    struct = check(base, context).type if prefix else None
    if isinstance(struct, ty.Struct):
        annotations = next((item.annotations for item in struct.fields if item.name == name), ())
        name = string_annotation(annotations, "name") or name

    if name.startswith("."):
        return name[1:]

    return f"{prefix}.{name}" if prefix else None


def _check_kinds(node: n.Table, keys: tuple[t.Key, ...]) -> None:
    kinds = [key.match_kind for key in keys]
    if kinds.count("lpm") > 1:
        second = [key for key in keys if key.match_kind == "lpm"][1]
        fail("a table can have one lpm key only", second.span)

    if "selector" in kinds and _property(node, "implementation") is None:
        fail(
            "a selector key needs the property 'implementation'", keys[kinds.index("selector")].span
        )


# Actions


def _actions(node: n.Table, context: Context) -> tuple[t.ActionEntry, ...]:
    entries: list[t.ActionEntry] = []
    for reference in node.actions:
        entry = _action_entry(reference, context)
        if any(entry.action is present.action for present in entries):
            fail(f"action '{entry.action.name}' is listed twice", reference.span)

        entries.append(entry)

    return tuple(entries)


def _find_action(reference: n.ActionReference, context: Context) -> t.Action:
    scope = context.scope.root() if reference.name.absolute else context.scope
    action = scope.find(reference.name.name)
    if action is None:
        fail(f"action '{reference.name.name}' is not declared", reference.name.span)

    if not isinstance(action, t.Action):
        fail(f"'{reference.name.name}' is not an action", reference.name.span)

    return action


def _action_entry(reference: n.ActionReference, context: Context) -> t.ActionEntry:
    """Type `a` or `a(x)`: the arguments are those of the parameters with a direction."""
    action = _find_action(reference, context)
    args = _bound_args(action, reference.args, reference.span, context)
    return t.ActionEntry(reference.span, action, args, reference.annotations)


def _bound_args(
    action: t.Action, args: tuple[n.Argument, ...], span: Span, context: Context
) -> t.Args:
    aligned = align(action.bound_params, args, span)
    return tuple(
        _bound_arg(arg, param, context)
        for arg, param in zip(aligned, action.bound_params, strict=True)
    )


def _bound_arg(arg: n.Argument | None, param: t.Parameter, context: Context) -> t.Expression | None:
    if arg is None:
        return param.default

    value = coerce(check(arg.value, context), param.type)
    if param.direction in ("out", "inout") and not is_left_value(value):
        fail(
            f"the argument for {param.direction} parameter '{param.name}' must be writable",
            arg.span,
        )

    return value


def _default(
    node: n.Table, item: n.Property | None, actions: tuple[t.ActionEntry, ...], context: Context
) -> t.ActionChoice:
    """Return the default action, NoAction if the table gives none."""
    if item is None:
        return _implicit_default(node, actions, context)

    reference = _reference(item.value)
    choice = _choice(reference, actions, context)
    if any(note.name == "tableonly" for note in choice.entry.annotations):
        fail(f"action '{choice.entry.action.name}' is annotated @tableonly", item.value.span)

    return choice


def _implicit_default(
    node: n.Table, actions: tuple[t.ActionEntry, ...], context: Context
) -> t.ActionChoice:
    listed = next((entry for entry in actions if entry.action.name == "NoAction"), None)
    if listed is None:
        action = context.scope.root().find("NoAction")
        if not isinstance(action, t.Action):
            fail(
                f"table {node.name} has no default_action, and NoAction is not declared",
                node.name_span,
            )

        marker = n.Annotation(node.name_span, "defaultonly", (), False)
        listed = t.ActionEntry(node.name_span, action, (), (marker,))

    return t.ActionChoice(listed.span, listed, ())


def _reference(node: n.Expression) -> n.ActionReference:
    match node:
        case n.Name(span):
            return n.ActionReference(span, (), node, (), False)
        case n.Call(span, n.Name() as name, (), args):
            return n.ActionReference(span, (), name, args, True)

    return fail("expected an action", node.span)


def _choice(
    reference: n.ActionReference, actions: tuple[t.ActionEntry, ...], context: Context
) -> t.ActionChoice:
    """Type an action with all its arguments, which must be one of the table's."""
    action = _find_action(reference, context)
    entry = next((present for present in actions if present.action is action), None)
    if entry is None:
        fail(f"action '{action.name}' is not in the table's list of actions", reference.span)

    args = reference.args
    if entry.args and len(args) == len(action.params):
        _require_same(entry, args[: len(entry.args)])
        args = args[len(entry.args) :]

    aligned = align(action.runtime_params, args, reference.span)
    values = tuple(
        _run_time_arg(arg, param, context)
        for arg, param in zip(aligned, action.runtime_params, strict=True)
    )

    return t.ActionChoice(reference.span, entry, values)


def _require_same(entry: t.ActionEntry, args: tuple[n.Argument, ...]) -> None:
    for written, listed in zip(args, entry.args, strict=True):
        if listed is None or written.span.text.split() != listed.span.text.split():
            fail("this argument differs from the one in the list of actions", written.span)


def _run_time_arg(arg: n.Argument | None, param: t.Parameter, context: Context) -> t.Expression:
    if arg is None:
        assert param.default is not None
        return param.default

    value = check_as(arg.value, param.type, context)
    if not is_compile_time(value):
        fail(f"the argument for '{param.name}' must be known at compile time", arg.span)

    return value


# Entries


def _entries(
    node: n.Table, keys: tuple[t.Key, ...], actions: tuple[t.ActionEntry, ...], context: Context
) -> tuple[t.Entry, ...]:
    if node.entries is None:
        return ()

    if not keys:
        fail("a table without keys cannot have entries", node.entries.span)

    ranks = _ranks(node, node.entries, context)
    if ranks and all(key.match_kind in ("exact", "lpm", "selector") for key in keys):
        fail(
            "entries of a table with exact and lpm keys only have no priorities", node.entries.span
        )

    if not ranks:
        ranks = [_annotated_rank(entry) for entry in node.entries.entries]

    return tuple(
        _entry(entry, rank, keys, actions=actions, context=context)
        for entry, rank in zip(node.entries.entries, ranks, strict=True)
    )


def _ranks(node: n.Table, entries: n.Entries, context: Context) -> list[t.Expression | None]:
    """Return in which order the target tries entries with priorities, the lowest first.

    Nothing if they have none.
    """
    if all(entry.priority is None for entry in entries.entries):
        return []

    largest_wins = _property(node, "largest_priority_wins") is None or _flag(
        node, "largest_priority_wins", context
    )
    step = _property(node, "priority_delta")
    delta = (
        1
        if step is None
        else constant_int(step.value, context, what="'priority_delta'", low=1, high=MAX_PRIORITY)
    )

    if entries.entries[0].priority is None:
        fail("the first entry needs a priority, since others have one", entries.entries[0].span)

    priorities: list[int] = []
    for entry in entries.entries:
        following = priorities[-1] + (-delta if largest_wins else delta) if priorities else 0
        written = entry.priority
        priorities.append(
            constant_int(written, context, what="a priority", low=1, high=MAX_PRIORITY)
            if written is not None
            else following
        )

        if priorities[-1] < 1:
            fail(
                f"the priority of this entry is {priorities[-1]}, but must be positive", entry.span
            )

    ranks = (
        [max(priorities) + 1 - priority for priority in priorities] if largest_wins else priorities
    )
    return [
        t.Literal(entry.span, ty.INT, rank)
        for entry, rank in zip(entries.entries, ranks, strict=True)
    ]


def _entry(
    node: n.Entry,
    rank: t.Expression | None,
    keys: tuple[t.Key, ...],
    actions: tuple[t.ActionEntry, ...],
    context: Context,
) -> t.Entry:
    matched = tuple(key for key in keys if key.match_kind != "selector")
    given = node.keys
    if len(given) == 1 and isinstance(given[0], n.DefaultExpression):
        given = given * len(matched)

    if len(given) == 1 and isinstance(given[0], n.ListExpression):
        given = given[0].items

    if len(given) != len(matched):
        fail(f"the table has {len(matched)} keys, found {len(given)}", node.span)

    sets = tuple(
        _entry_key(written, key, context) for written, key in zip(given, matched, strict=True)
    )
    choice = _choice(node.action, actions, context)
    if any(note.name == "defaultonly" for note in choice.entry.annotations):
        raise CompileError(
            f"action '{choice.entry.action.name}' is annotated @defaultonly", node.action.span
        )

    return t.Entry(node.span, keys=sets, choice=choice, priority=rank, const=node.const)


def _annotated_rank(node: n.Entry) -> t.Expression | None:
    """Return the rank that `@priority(n)` gives, by which the target tries the lowest first."""
    number = int_annotation(node.annotations, "priority")
    return t.Literal(node.span, ty.INT, number) if number is not None else None


def _entry_key(node: n.Expression, key: t.Key, context: Context) -> t.Expression:
    value = check_set(node, key.expression.type, context)
    allowed = ENTRY_SETS.get(key.match_kind, ())
    if not isinstance(value, allowed):
        fail(f"a key of kind '{key.match_kind}' cannot match this", node.span)

    if not is_known_set(value):
        fail("what an entry matches must be known at compile time", node.span)

    return value
