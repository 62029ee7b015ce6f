"""Parsers, controls and packages, with their contents."""

from __future__ import annotations

from dataclasses import replace

from ofan_p4.compiler.syntax import declaration_nodes as nd
from ofan_p4.compiler.syntax import nodes as n
from ofan_p4.compiler.syntax.annotations import annotation_list
from ofan_p4.compiler.syntax.cursor import Cursor, comma_list, describe
from ofan_p4.compiler.syntax.expressions import expression, key_set, type_expression, type_params
from ofan_p4.compiler.syntax.functions import action, instance, new_type_name, parameters
from ofan_p4.compiler.syntax.lexer import Kind
from ofan_p4.compiler.syntax.statements import block, constant, statement, variable_tail
from ofan_p4.compiler.syntax.tables import table
from ofan_p4.diagnostics import CompileError


def _block_type(cursor: Cursor, notes: n.Annotations) -> nd.BlockType:
    """`(parser | control | package) name [<T>] (params)`, with which bodies begin as well."""
    keyword = cursor.take()
    name = new_type_name(cursor, f"the name of the {keyword.text}")
    generics = type_params(cursor)
    params = parameters(cursor)

    return nd.BlockType(
        cursor.since(keyword.span),
        notes,
        kind=keyword.text,
        name=name,
        type_params=generics,
        params=params,
    )


def _with_end(declared: nd.BlockType, cursor: Cursor) -> nd.BlockType:
    return replace(declared, span=cursor.since(declared.span))


def package(cursor: Cursor, notes: n.Annotations) -> nd.BlockType:
    """`package name [<T>] (params);`."""
    declared = _block_type(cursor, notes)
    cursor.expect(";", "after the package")

    return _with_end(declared, cursor)


def _constructor(cursor: Cursor) -> tuple[nd.Parameter, ...]:
    return parameters(cursor) if cursor.at("(") else ()


def parser(cursor: Cursor, notes: n.Annotations) -> nd.Parser | nd.BlockType:
    """`parser name [<T>] (params) (; | [(params)] { local* state+ })`."""
    declared = _block_type(cursor, notes)
    if cursor.accept(";"):
        return _with_end(declared, cursor)

    constructor = _constructor(cursor)
    head = cursor.since(declared.span)
    cursor.expect("{", "to begin the parser")
    local: list[nd.Declaration] = []
    states: list[nd.State] = []

    while not cursor.accept("}"):
        inner = annotation_list(cursor)
        # `state` is no keyword: a local may have a type of that name.
        if cursor.at_word("state") and cursor.peek().kind is Kind.NAME:
            states.append(_state(cursor, inner))
        elif states:
            cursor.fail(f"expected 'state' or '}}', found {describe(cursor.token)}")
        else:
            local.append(_local(cursor, inner))

    if not states:
        raise CompileError(f"parser {declared.name} has no state", head)

    return nd.Parser(
        head,
        notes,
        name=declared.name,
        type_params=declared.type_params,
        params=declared.params,
        constructor=constructor,
        locals=tuple(local),
        states=tuple(states),
    )


def _state(cursor: Cursor, notes: n.Annotations) -> nd.State:
    """`state name { statement* [transition ...;] }`."""
    start = cursor.take().span
    name = cursor.expect_name("the name of a state")
    head = cursor.since(start)
    opening = cursor.expect("{", "to begin the state").span
    statements: list[n.Statement] = []
    transition = None

    while not cursor.at("}"):
        if cursor.token.kind is Kind.END:
            raise CompileError("this '{' is never closed", opening)

        # A transition ends the state; a statement behind it is an error below.
        if cursor.at("transition"):
            transition = _transition(cursor)
            break

        statements.append(statement(cursor))

    cursor.expect("}", "after the transition")
    return nd.State(
        head, notes, name=name.text, statements=tuple(statements), transition=transition
    )


def _transition(cursor: Cursor) -> nd.Transition:
    """`transition (name; | select (keys) { case* })`."""
    start = cursor.take().span
    if not cursor.accept("select"):
        name = cursor.expect_name("a state or 'select'")
        cursor.expect(";", "after the transition")
        return nd.Transition(name.span, name.text, (), None)

    cursor.expect("(", "after 'select'")
    keys = comma_list(cursor, ")", expression)
    cursor.expect("{", "to begin the cases")
    cases: list[nd.SelectCase] = []

    while not cursor.accept("}"):
        cases.append(_select_case(cursor))

    cursor.accept(";")
    return nd.Transition(cursor.since(start), "", keys, tuple(cases))


def _select_case(cursor: Cursor) -> nd.SelectCase:
    start = cursor.span
    keys = key_set(cursor)
    cursor.expect(":", "after what a case matches")
    name = cursor.expect_name("a state")
    cursor.expect(";", "after a case")

    return nd.SelectCase(cursor.since(start), keys, name.text, name.span)


def control(cursor: Cursor, notes: n.Annotations) -> nd.Control | nd.BlockType:
    """`control name [<T>] (params) (; | [(params)] { local* apply block })`."""
    # "is already declared" points at the name of a control alone.
    name_span = cursor.peek().span
    declared = _block_type(cursor, notes)
    if cursor.accept(";"):
        return _with_end(declared, cursor)

    constructor = _constructor(cursor)
    head = cursor.since(declared.span)
    cursor.expect("{", "to begin the control")
    local: list[nd.Declaration] = []

    while True:
        inner = annotation_list(cursor)
        # `apply {`: the word is a name elsewhere, as in `t.apply()`.
        if cursor.at_word("apply") and cursor.peek().text in ("{", "@"):
            break

        if cursor.at("}") or cursor.token.kind is Kind.END:
            cursor.fail(f"control {declared.name} has no 'apply' block")

        local.append(_local(cursor, inner))

    cursor.take()
    body = block(cursor)
    cursor.expect("}", f"to end control {declared.name}")

    return nd.Control(
        head,
        notes,
        name=declared.name,
        name_span=name_span,
        type_params=declared.type_params,
        params=declared.params,
        constructor=constructor,
        locals=tuple(local),
        body=body,
    )


def _local(cursor: Cursor, notes: n.Annotations) -> nd.Declaration:
    """Parse a declaration in front of the states of a parser or the `apply` of a control."""
    if cursor.at("const"):
        return constant(cursor, notes)
    if cursor.at("action"):
        return action(cursor, notes)
    if cursor.at("table"):
        return table(cursor, notes)
    if cursor.at("value_set"):
        return _value_set(cursor, notes)

    declared = type_expression(cursor)
    if cursor.at("("):
        return instance(cursor, notes, declared)

    return variable_tail(cursor, notes, declared)


def _value_set(cursor: Cursor, notes: n.Annotations) -> nd.ValueSet:
    """`value_set<type>(size) name;`."""
    start = cursor.take().span
    cursor.expect("<")
    element = type_expression(cursor)
    cursor.expect(">")
    cursor.expect("(", "and the size of the value set")
    size = expression(cursor)
    cursor.expect(")")
    name = cursor.expect_name("the name of the value set")
    cursor.expect(";", "after the value set")

    return nd.ValueSet(cursor.since(start), notes, type=element, size=size, name=name.text)
