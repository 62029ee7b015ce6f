"""Declarations with parameters: functions, methods of externs, actions, instances."""

from __future__ import annotations

from ofan_p4.compiler.syntax import declaration_nodes as nd
from ofan_p4.compiler.syntax import nodes as n
from ofan_p4.compiler.syntax.annotations import annotation_list
from ofan_p4.compiler.syntax.cursor import Cursor, comma_list
from ofan_p4.compiler.syntax.expressions import argument, expression, type_expression, type_params
from ofan_p4.compiler.syntax.statements import block


def new_type_name(cursor: Cursor, noun: str) -> str:
    """Take a name that is a type from here on."""
    name = cursor.expect_name(noun).text
    # The grammar of P4_16 needs to know types from names: `a < b` or `a<b>(c)`.
    cursor.type_names.add(name)
    return name


def parameters(cursor: Cursor) -> tuple[nd.Parameter, ...]:
    """`( [parameter (, parameter)*] )`."""
    cursor.expect("(", "to begin the parameters")
    return comma_list(cursor, ")", _parameter)


def _parameter(cursor: Cursor) -> nd.Parameter:
    """`[in | out | inout] type name [= expression]`."""
    notes = annotation_list(cursor)
    start = cursor.span
    direction = cursor.take().text if cursor.at("in", "out", "inout") else ""
    declared = type_expression(cursor)
    name = cursor.expect_name("the name of a parameter")
    default = expression(cursor) if cursor.accept("=") else None

    return nd.Parameter(
        cursor.since(start),
        notes,
        direction=direction,
        type=declared,
        name=name.text,
        default=default,
    )


def method_tail(cursor: Cursor, notes: n.Annotations, returns: n.TypeExpression) -> nd.Method:
    """`name [<T>] (params)`, after the type."""
    name = cursor.expect_name("the name of a function or an instance")
    generics = type_params(cursor)
    params = parameters(cursor)

    return nd.Method(
        cursor.since(returns.span),
        notes,
        returns=returns,
        name=name.text,
        type_params=generics,
        params=params,
    )


def extern(cursor: Cursor, notes: n.Annotations) -> nd.Extern | nd.ExternFunction:
    """`extern name [<T>] { method* } | extern signature;`."""
    start = cursor.take().span
    # `extern E<T> {` and `extern T f<T>(...)` look alike up to the brace, so the first is tried.
    if cursor.at_name() and cursor.peek().text in ("{", "<"):
        declared = cursor.attempt(lambda inner: _extern_object(inner, notes))
        if declared is not None:
            return declared
        # A brace decides: then the error inside the extern is reported.
        if cursor.peek().text == "{":
            return _extern_object(cursor, notes)

    method = _signature(cursor)
    cursor.expect(";", "after an extern function")
    return nd.ExternFunction(cursor.since(start), method)


def _signature(cursor: Cursor) -> nd.Method:
    """`type name [<T>] (params)`.

    The type parameters may stand in the returned type, before they are declared.
    """
    position = cursor.position
    type_names = set(cursor.type_names)
    returns = type_expression(cursor)
    method = method_tail(cursor, (), returns)
    cursor.position = position
    # Once more, now that the type parameters are known to be types.
    generics = method.type_params
    cursor.type_names = type_names | set(generics)

    return method_tail(cursor, (), type_expression(cursor))


def _extern_object(cursor: Cursor, notes: n.Annotations) -> nd.Extern:
    start = cursor.span
    name = new_type_name(cursor, "the name of the extern")
    generics = type_params(cursor)
    cursor.expect("{", "to begin the methods")
    methods: list[nd.Method] = []

    while not cursor.accept("}"):
        methods.append(_extern_method(cursor, name))

    return nd.Extern(
        cursor.since(start), notes, name=name, type_params=generics, methods=tuple(methods)
    )


def _extern_method(cursor: Cursor, extern: str) -> nd.Method:
    notes = annotation_list(cursor)
    start = cursor.span
    cursor.accept("abstract")

    # A method with the name of the extern and no type is its constructor.
    if cursor.token.text == extern and cursor.peek().text == "(":
        cursor.take()
        params = parameters(cursor)
        method = nd.Method(
            cursor.since(start), notes, returns=None, name=extern, type_params=(), params=params
        )
    else:
        method = _signature(cursor)

    cursor.expect(";", "after a method")
    return method


def action(cursor: Cursor, notes: n.Annotations) -> nd.Action:
    """`action name (params) block`."""
    start = cursor.take().span
    name = cursor.expect_name("the name of the action")
    params = parameters(cursor)
    span = cursor.since(start)

    return nd.Action(span, notes, name=name.text, params=params, body=block(cursor))


def instance(cursor: Cursor, notes: n.Annotations, declared: n.TypeExpression) -> nd.Instance:
    """`type (args) name;`."""
    cursor.expect("(", "to begin the constructor's arguments")
    args = comma_list(cursor, ")", argument)
    name = cursor.expect_name("the name of an instance")

    if cursor.at("="):
        # "Instantiations with abstract methods": no extern of v1model has any.
        cursor.fail("instances with abstract methods are not supported")

    cursor.expect(";", "after an instance")
    return nd.Instance(cursor.since(declared.span), notes, type=declared, args=args, name=name.text)
