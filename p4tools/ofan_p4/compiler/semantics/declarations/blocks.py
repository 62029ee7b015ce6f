"""Parsers and controls, and the instances that stand in them."""

from __future__ import annotations

from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.constructors import check_constructor
from ofan_p4.compiler.semantics.declarations.functions import check_action
from ofan_p4.compiler.semantics.declarations.signatures import declare_params, params_of
from ofan_p4.compiler.semantics.scope import Context, fail
from ofan_p4.compiler.semantics.statements import check_block, declare_constant, declare_variable
from ofan_p4.compiler.semantics.states import check_state, state_names
from ofan_p4.compiler.semantics.tables.table import check_table
from ofan_p4.compiler.semantics.type_names import resolve_type
from ofan_p4.compiler.semantics.unset import unset_reads
from ofan_p4.compiler.semantics.values import is_compile_time
from ofan_p4.compiler.syntax import declaration_nodes as nd
from ofan_p4.compiler.syntax import nodes as n


def check_instance(node: nd.Instance, context: Context) -> td.Instance:
    """Type `T(args) name;`; whether it may stand here is for the caller to say."""
    checked, args = check_constructor(node.type, node.args, node.span, context)
    return td.Instance(
        node.span, name=node.name, type=checked, args=args, annotations=node.annotations
    )


def check_control(node: nd.Control, context: Context) -> td.Control:
    """Type a control (P4_16 specification, "Control blocks")."""
    inner, params, constructor = _open(node, "control", context)
    local = [
        checked for item in node.locals if (checked := _control_local(item, inner)) is not None
    ]
    body = check_block(node.body, inner)

    control = td.Control(
        node.span,
        name=node.name,
        params=params,
        constructor=constructor,
        # Read after the body, which adds to them.
        locals=(*local, *(inner.direct_applications or [])),
        body=body,
        annotations=node.annotations,
    )
    context.globals.warnings.extend(unset_reads(control))

    return control


def check_parser(node: nd.Parser, context: Context) -> td.ParserBlock:
    """Type a parser (P4_16 specification, "Packet parsing")."""
    inner, params, constructor = _open(node, "parser", context)
    local = [checked for item in node.locals if (checked := _parser_local(item, inner)) is not None]
    # All names before the first state: transitions go forward as well as back.
    names = state_names(node)
    states = tuple(check_state(state, names, inner) for state in node.states)
    _check_end(node, states)

    return td.ParserBlock(
        node.span,
        name=node.name,
        params=params,
        constructor=constructor,
        locals=(*local, *(inner.direct_applications or [])),
        states=states,
        annotations=node.annotations,
    )


def _check_end(node: nd.Parser, states: tuple[td.State, ...]) -> None:
    """Refuse a parser that no packet can leave."""
    following = {state.name: {case.state for case in state.transition.cases} for state in states}
    reached = {"start"}
    waiting = ["start"]

    while waiting:
        fresh = following.get(waiting.pop(), set()) - reached
        reached |= fresh
        waiting += fresh

    if not reached & {"accept", "reject"}:
        fail(f"parser {node.name} never reaches accept or reject", node.span)


def _open(
    node: nd.Control | nd.Parser, place: str, context: Context
) -> tuple[Context, tuple[ty.Parameter, ...], tuple[ty.Parameter, ...]]:
    """Return the scope inside a block, its parameters and those of its constructor."""
    # Only the type of a block may have type parameters, not a block with a body.
    if node.type_params:
        fail(f"a {place} with a body cannot have type parameters", node.span)

    inner = context.nested(place=place, returns=ty.VOID, direct_applications=[])
    params = params_of(node.params, inner)
    constructor = params_of(node.constructor, inner, constructor=True)
    declare_params((*params, *constructor), inner)

    return inner, params, constructor


def _control_local(
    node: nd.Declaration, context: Context
) -> td.Variable | td.Instance | td.Action | td.Table | None:
    match node:
        case n.Constant() | n.Variable() | nd.Instance():
            return _any_local(node, context)
        case nd.Action():
            action = check_action(node, context)
            context.scope.declare(node.name, action, node.span)
            return action
        case nd.Table():
            table = check_table(node, context)
            context.scope.declare(node.name, table, node.name_span)
            return table
        case _:
            return fail("this cannot stand in a control", node.span)


def _parser_local(
    node: nd.Declaration, context: Context
) -> td.Variable | td.Instance | td.ValueSet | None:
    match node:
        case n.Constant() | n.Variable() | nd.Instance():
            return _any_local(node, context)
        case nd.ValueSet():
            element = resolve_type(node.type, context)
            size = context.check(node.size)
            if element == ty.INT or not is_compile_time(size):
                wrong = "an element has no width" if element == ty.INT else "its size is not known"
                fail(f"this is no value set: {wrong}", node.span)

            value_set = td.ValueSet(
                node.span,
                name=node.name,
                type=element,
                size=size,
                annotations=node.annotations,
            )
            context.scope.declare(node.name, value_set, node.span)
            return value_set
        case _:
            return fail("this cannot stand in a parser", node.span)


def _any_local(
    node: n.Constant | n.Variable | nd.Instance, context: Context
) -> td.Variable | td.Instance | None:
    """Declare a local of either block; None for a constant, of which nothing is left to lower."""
    match node:
        case n.Constant():
            declare_constant(node, context)
            return None
        case n.Variable():
            return declare_variable(node, context)
        case nd.Instance():
            instance = check_instance(node, context)
            context.scope.declare(node.name, instance, node.span)
            return instance
