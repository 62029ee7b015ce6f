"""Functions and actions."""

from __future__ import annotations

from functools import partial

from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import typed_declarations as td
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.declarations.signatures import (
    check_signature,
    declare_params,
    params_of,
)
from ofan_p4.compiler.semantics.scope import Context, GenericFunction, TypeName, fail
from ofan_p4.compiler.semantics.statements import check_block
from ofan_p4.compiler.semantics.type_names import resolve_type
from ofan_p4.compiler.syntax import declaration_nodes as nd


def declare_function(node: nd.Function, context: Context) -> None:
    """Declare a function; a function with type parameters is checked when it is called."""
    if node.method.type_params:
        generic = GenericFunction(
            check_signature(node.method, context), partial(_specialised, node, context)
        )
        context.scope.declare(node.name, generic, node.span)
        # Once for types of which nothing is known, since it may never be called.
        generic.make(generic.signature.type_params)
        return

    function = _function(node, context.nested(place="function"))
    context.scope.declare(node.name, function, node.span)


def _function(node: nd.Function, inner: Context) -> td.Function:
    assert node.method.returns is not None
    returns = resolve_type(node.method.returns, inner)
    params = params_of(node.method.params, inner)
    declare_params(params, inner)
    body = check_block(node.body, inner.nested(returns=returns))

    if returns != ty.VOID and not _always_returns(body):
        fail(f"function '{node.name}' can end without returning a value", node.method.span)

    return td.Function(node.span, name=node.name, params=params, returns=returns, body=body)


def _always_returns(body: td.Body) -> bool:
    """Say whether every way through a body ends with a return."""
    for statement in body:
        # Loops and switches count as left without a return, whatever they hold.
        match statement:
            case t.Return() | t.Exit():
                return True
            case t.Block(_, inner) if _always_returns(inner):
                return True
            case t.If(_, _, then, otherwise) if _always_returns(then) and _always_returns(
                otherwise
            ):
                return True

    return False


def _specialised(node: nd.Function, context: Context, args: tuple[ty.Type, ...]) -> td.Function:
    """Check a generic function for these type arguments."""
    inner = context.nested(place="function")
    for name, arg in zip(node.method.type_params, args, strict=True):
        inner.scope.declare(name, TypeName(arg), node.span)

    return _function(node, inner)


def check_action(node: nd.Action, context: Context) -> td.Action:
    """Type an action (P4_16 specification, "Actions")."""
    inner = context.nested(place="action", returns=ty.VOID)
    params = params_of(node.params, inner)
    directionless = False

    for param in params:
        # "Actions": the control plane's parameters stand last.
        if param.direction and directionless:
            fail("parameters with a direction stand before those without", param.span)

        directionless = directionless or not param.direction
        _require_action_type(param)

    declare_params(params, inner)
    body = check_block(node.body, inner)
    return td.Action(
        node.span,
        name=node.name,
        params=params,
        body=body,
        annotations=node.annotations,
        top_level=context.place == "top",
    )


def _require_action_type(param: ty.Parameter) -> None:
    if param.direction:
        return

    # P4Runtime sends action parameters as numbers of a known width.
    below = ty.underlying(param.type)
    if not isinstance(below, ty.Bits) and below != ty.BOOL:
        fail(f"the control plane cannot give a value of type {ty.show(param.type)}", param.span)
