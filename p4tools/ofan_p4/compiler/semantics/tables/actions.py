"""The actions of a table: its list, its default, and the choice of an action."""

from __future__ import annotations

from ofan_p4.compiler.hints import did_you_mean
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.arguments import align
from ofan_p4.compiler.semantics.conversion import coerce
from ofan_p4.compiler.semantics.scope import Context, fail
from ofan_p4.compiler.semantics.values import check_as, is_compile_time, is_left_value
from ofan_p4.compiler.syntax import declaration_nodes as nd
from ofan_p4.compiler.syntax import nodes as n
from ofan_p4.diagnostics import Span


def check_actions(node: nd.Table, context: Context) -> tuple[td.ActionEntry, ...]:
    """Type the list of actions."""
    entries: list[td.ActionEntry] = []
    for reference in node.actions:
        entry = _action_entry(reference, context)
        # The control plane identifies the actions of a table by name alone.
        if any(entry.action is present.action for present in entries):
            fail(f"action '{entry.action.name}' is listed twice", reference.span)

        entries.append(entry)

    return tuple(entries)


def _find_action(reference: nd.ActionReference, context: Context) -> td.Action:
    scope = context.scope.root() if reference.name.absolute else context.scope
    action = scope.find(reference.name.name)
    if action is None:
        hint = did_you_mean(reference.name.name, context.scope.names(td.Action))
        fail(f"action '{reference.name.name}' is not declared{hint}", reference.name.span)

    if not isinstance(action, td.Action):
        fail(f"'{reference.name.name}' is not an action", reference.name.span)

    return action


def _action_entry(reference: nd.ActionReference, context: Context) -> td.ActionEntry:
    """Type `a` or `a(x)`: the arguments are those of the parameters with a direction."""
    action = _find_action(reference, context)
    args = _bound_args(action, reference.args, reference.span, context)
    return td.ActionEntry(reference.span, action, args, reference.annotations)


def _bound_args(
    action: td.Action, args: tuple[n.Argument, ...], span: Span, context: Context
) -> td.Args:
    aligned = align(action.bound_params, args, span)
    return tuple(
        _bound_arg(arg, param, context)
        for arg, param in zip(aligned, action.bound_params, strict=True)
    )


def _bound_arg(
    arg: n.Argument | None, param: ty.Parameter, context: Context
) -> ty.Expression | None:
    if arg is None:
        return ty.default_of(param)

    value = coerce(context.check(arg.value), param.type)
    if param.direction in ("out", "inout") and not is_left_value(arg.value, value):
        fail(
            f"the argument for {param.direction} parameter '{param.name}' must be writable",
            arg.span,
        )

    return value


def default_action(
    node: nd.Table, item: nd.Property | None, actions: tuple[td.ActionEntry, ...], context: Context
) -> td.ActionChoice:
    """Return the default action, NoAction if the table gives none."""
    if item is None:
        return _implicit_default(node, actions, context)

    reference = _reference(item.value)
    choice = check_choice(reference, actions, context)
    if any(note.name == "tableonly" for note in choice.entry.annotations):
        fail(f"action '{choice.entry.action.name}' is annotated @tableonly", item.value.span)

    return choice


def _implicit_default(
    node: nd.Table, actions: tuple[td.ActionEntry, ...], context: Context
) -> td.ActionChoice:
    listed = next((entry for entry in actions if entry.action.name == "NoAction"), None)
    if listed is None:
        action = context.scope.root().find("NoAction")
        if not isinstance(action, td.Action):
            fail(
                f"table {node.name} has no default_action, and NoAction is not declared",
                node.name_span,
            )

        # Added by the compiler, NoAction is no choice for entries; p4c marks it so as well.
        marker = n.Annotation(node.name_span, "defaultonly", (), False)
        listed = td.ActionEntry(node.name_span, action, (), (marker,))

    return td.ActionChoice(listed.span, listed, ())


def _reference(node: n.Expression) -> nd.ActionReference:
    match node:
        case n.Name(span):
            return nd.ActionReference(span, (), node, ())
        case n.Call(span, n.Name() as name, (), args):
            return nd.ActionReference(span, (), name, args)

    return fail("expected an action", node.span)


def check_choice(
    reference: nd.ActionReference, actions: tuple[td.ActionEntry, ...], context: Context
) -> td.ActionChoice:
    """Type an action with all its arguments; it must be an action of the table."""
    action = _find_action(reference, context)
    entry = next((present for present in actions if present.action is action), None)
    if entry is None:
        fail(f"action '{action.name}' is not in the table's list of actions", reference.span)

    args = reference.args
    # The arguments that the list has bound may be repeated, if they are the same.
    if entry.args and len(args) == len(action.params):
        _require_same(entry, args[: len(entry.args)])
        args = args[len(entry.args) :]

    aligned = align(action.runtime_params, args, reference.span)
    values = tuple(
        _run_time_arg(arg, param, context)
        for arg, param in zip(aligned, action.runtime_params, strict=True)
    )

    return td.ActionChoice(reference.span, entry, values)


def _require_same(entry: td.ActionEntry, args: tuple[n.Argument, ...]) -> None:
    for written, listed in zip(args, entry.args, strict=True):
        # Compared as text: both stand in the same scope, so they mean the same.
        if listed is None or written.span.text.split() != listed.span.text.split():
            fail("this argument differs from the one in the list of actions", written.span)


def _run_time_arg(arg: n.Argument | None, param: ty.Parameter, context: Context) -> ty.Expression:
    if arg is None:
        return ty.default_of(param)

    value = check_as(arg.value, param.type, context)
    if not is_compile_time(value):
        fail(f"the argument for '{param.name}' must be known at compile time", arg.span)

    return value
