"""Declarations and the whole program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from emulation.compiler.diagnostics import CompileError, Source
from emulation.compiler.syntax import nodes as n
from emulation.compiler.syntax.annotations import annotation_list
from emulation.compiler.syntax.cursor import Cursor, comma_list, describe
from emulation.compiler.syntax.expressions import (
    argument,
    expression,
    key_set,
    type_expression,
    type_params,
)
from emulation.compiler.syntax.lexer import Kind, tokenize
from emulation.compiler.syntax.statements import block, constant, statement, variable_tail
from emulation.compiler.syntax.tables import table

T = TypeVar("T")


def parse(source: Source) -> n.Program:
    """Parse a preprocessed program; raises CompileError at the first token that does not fit."""
    cursor = Cursor(tokenize(source))
    start = cursor.span
    declarations: list[n.Declaration] = []

    while cursor.token.kind is not Kind.END:
        if not cursor.accept(";"):
            declarations.append(_top_level(cursor))

    return n.Program(cursor.since(start), tuple(declarations))


def _top_level(cursor: Cursor) -> n.Declaration:
    notes = annotation_list(cursor)
    token = cursor.token
    # `type` is no keyword in our lexer, since v1model uses it as the name of parameters.
    if token.text == "type" and token.kind is Kind.NAME and cursor.peek().text not in ("<", "("):
        return _typedef(cursor, notes)

    # `error { ... }` declares errors, `error f()` is a function that returns one.
    is_error_type = token.text == "error" and cursor.peek().text != "{"
    if token.kind is Kind.SYMBOL and token.text in _BY_KEYWORD and not is_error_type:
        return _BY_KEYWORD[token.text](cursor, notes)

    return _function_or_instance(cursor, notes)


def _function_or_instance(cursor: Cursor, notes: n.Annotations) -> n.Declaration:
    """`type name [<T>] (params) block | type (args) name;`."""
    start = cursor.span
    declared = type_expression(cursor)
    if cursor.at("("):
        return _instance(cursor, notes, declared)

    method = _method_tail(cursor, notes, declared)
    body = block(cursor)
    return n.Function(cursor.since(start), method, body)


def _instance(cursor: Cursor, notes: n.Annotations, declared: n.TypeExpression) -> n.Instance:
    """`type (args) name;`."""
    cursor.expect("(", "to begin the constructor's arguments")
    args = comma_list(cursor, ")", argument)
    name = cursor.expect_name("the name of an instance")

    if cursor.at("="):
        # "Instantiations with abstract methods": no extern of v1model has any.
        cursor.fail("instances with abstract methods are not supported")

    cursor.expect(";", "after an instance")
    return n.Instance(cursor.since(declared.span), notes, type=declared, args=args, name=name.text)


# Types


def _typedef(cursor: Cursor, notes: n.Annotations) -> n.Typedef:
    """`(typedef | type) type name;`."""
    keyword = cursor.take()
    target = type_expression(cursor)
    name = _new_type_name(cursor, "the name of the type")
    cursor.expect(";", "after the type")

    return n.Typedef(
        cursor.since(keyword.span), notes, type=target, name=name, distinct=keyword.text == "type"
    )


def _new_type_name(cursor: Cursor, what: str) -> str:
    name = cursor.expect_name(what).text
    # The grammar of P4_16 needs to know types from names: `a < b` or `a<b>(c)`.
    cursor.type_names.add(name)
    return name


def _struct(cursor: Cursor, notes: n.Annotations) -> n.Struct:
    """`(struct | header | header_union) name [<T>] { field* }`."""
    keyword = cursor.take()
    name = _new_type_name(cursor, f"the name of the {keyword.text}")
    params = type_params(cursor)
    cursor.expect("{", "to begin the fields")
    fields: list[n.Field] = []

    while not cursor.accept("}"):
        fields.append(_field(cursor))

    return n.Struct(
        cursor.since(keyword.span),
        notes,
        kind=keyword.text,
        name=name,
        type_params=params,
        fields=tuple(fields),
    )


def _field(cursor: Cursor) -> n.Field:
    notes = annotation_list(cursor)
    declared = type_expression(cursor)
    name = cursor.expect_name("the name of a field")
    cursor.expect(";", "after a field")

    return n.Field(declared.span.to(name.span), notes, declared, name.text)


def _enum(cursor: Cursor, notes: n.Annotations) -> n.EnumDeclaration:
    """`enum [type] name { member [= value], ... }`."""
    start = cursor.take().span
    # `enum E {` or `enum bit<8> E {`: a name before the brace is the enum itself.
    underlying = None if cursor.at_name() and cursor.peek().text == "{" else type_expression(cursor)
    name = _new_type_name(cursor, "the name of the enum")
    cursor.expect("{", "to begin the members")
    members = comma_list(cursor, "}", _enum_member)

    return n.EnumDeclaration(
        cursor.since(start), notes, name=name, underlying=underlying, members=members
    )


def _enum_member(cursor: Cursor) -> n.EnumMember:
    annotation_list(cursor)
    name = cursor.expect_name("a member")
    value = expression(cursor) if cursor.accept("=") else None

    return n.EnumMember(name.span, name.text, value)


def _name_list(cursor: Cursor, notes: n.Annotations) -> n.NameList:
    """`(error | match_kind) { name, ... }`."""
    keyword = cursor.take()
    cursor.expect("{", "to begin the names")
    names = comma_list(cursor, "}", lambda at: at.expect_name(f"a name of {keyword.text}"))

    return n.NameList(
        cursor.since(keyword.span), keyword.text, tuple((name.text, name.span) for name in names)
    )


# Functions


def _params(cursor: Cursor) -> tuple[n.Parameter, ...]:
    cursor.expect("(", "to begin the parameters")
    return comma_list(cursor, ")", _parameter)


def _parameter(cursor: Cursor) -> n.Parameter:
    """`[in | out | inout] type name [= expression]`."""
    notes = annotation_list(cursor)
    start = cursor.span
    direction = cursor.take().text if cursor.at("in", "out", "inout") else ""
    declared = type_expression(cursor)
    name = cursor.expect_name("the name of a parameter")
    default = expression(cursor) if cursor.accept("=") else None

    return n.Parameter(
        cursor.since(start),
        notes,
        direction=direction,
        type=declared,
        name=name.text,
        default=default,
    )


def _method_tail(cursor: Cursor, notes: n.Annotations, returns: n.TypeExpression) -> n.Method:
    name = cursor.expect_name("the name of a function or an instance")
    generics = type_params(cursor)
    params = _params(cursor)

    return n.Method(
        cursor.since(returns.span),
        notes,
        returns=returns,
        name=name.text,
        type_params=generics,
        params=params,
    )


def _extern(cursor: Cursor, notes: n.Annotations) -> n.Extern | n.ExternFunction:
    """`extern name [<T>] { method* } | extern signature;`."""
    start = cursor.take().span
    # `extern E<T> {` and `extern T f<T>(...)` look alike up to the brace, so the first is tried.
    if cursor.at_name() and cursor.peek().text in ("{", "<"):
        declared = cursor.attempt(lambda at: _extern_object(at, notes))
        if declared is not None:
            return declared
        # A brace decides: then the error inside the extern is the one to report.
        if cursor.peek().text == "{":
            return _extern_object(cursor, notes)

    method = _signature(cursor)
    cursor.expect(";", "after an extern function")
    return n.ExternFunction(cursor.since(start), method)


def _signature(cursor: Cursor) -> n.Method:
    """`type name [<T>] (params)`.

    The type parameters may stand in the returned type, before they are declared.
    """
    position = cursor.position
    known = set(cursor.type_names)
    returns = type_expression(cursor)
    method = _method_tail(cursor, (), returns)
    cursor.position = position
    # Once more, now that the type parameters are known to be types.
    generics = method.type_params
    cursor.type_names = known | set(generics)

    return _method_tail(cursor, (), type_expression(cursor))


def _extern_object(cursor: Cursor, notes: n.Annotations) -> n.Extern:
    start = cursor.span
    name = _new_type_name(cursor, "the name of the extern")
    generics = type_params(cursor)
    cursor.expect("{", "to begin the methods")
    methods: list[n.Method] = []

    while not cursor.accept("}"):
        methods.append(_extern_method(cursor, name))

    return n.Extern(
        cursor.since(start), notes, name=name, type_params=generics, methods=tuple(methods)
    )


def _extern_method(cursor: Cursor, extern: str) -> n.Method:
    notes = annotation_list(cursor)
    start = cursor.span
    cursor.accept("abstract")

    # A method with the name of the extern and no type is its constructor.
    if cursor.token.text == extern and cursor.peek().text == "(":
        cursor.take()
        params = _params(cursor)
        method = n.Method(
            cursor.since(start), notes, returns=None, name=extern, type_params=(), params=params
        )
    else:
        method = _signature(cursor)

    cursor.expect(";", "after a method")
    return method


def _action(cursor: Cursor, notes: n.Annotations) -> n.Action:
    """`action name (params) block`."""
    start = cursor.take().span
    name = cursor.expect_name("the name of the action")
    params = _params(cursor)
    span = cursor.since(start)

    return n.Action(span, notes, name=name.text, params=params, body=block(cursor))


# Parsers and controls


def _block_type(cursor: Cursor, notes: n.Annotations) -> n.BlockType:
    """`(parser | control | package) name [<T>] (params)`, with which bodies begin as well."""
    keyword = cursor.take()
    name = _new_type_name(cursor, f"the name of the {keyword.text}")
    generics = type_params(cursor)
    params = _params(cursor)

    return n.BlockType(
        cursor.since(keyword.span),
        notes,
        kind=keyword.text,
        name=name,
        type_params=generics,
        params=params,
    )


def _with_end(declared: n.BlockType, cursor: Cursor) -> n.BlockType:
    return replace(declared, span=cursor.since(declared.span))


def _package(cursor: Cursor, notes: n.Annotations) -> n.BlockType:
    """`package name [<T>] (params);`."""
    declared = _block_type(cursor, notes)
    cursor.expect(";", "after the package")

    return _with_end(declared, cursor)


def _constructor(cursor: Cursor) -> tuple[n.Parameter, ...]:
    return _params(cursor) if cursor.at("(") else ()


def _parser(cursor: Cursor, notes: n.Annotations) -> n.Parser | n.BlockType:
    """`parser name [<T>] (params) (; | [(params)] { local* state+ })`."""
    declared = _block_type(cursor, notes)
    if cursor.accept(";"):
        return _with_end(declared, cursor)

    constructor = _constructor(cursor)
    head = cursor.since(declared.span)
    cursor.expect("{", "to begin the parser")
    local: list[n.Declaration] = []
    states: list[n.State] = []

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

    return n.Parser(
        head,
        notes,
        name=declared.name,
        type_params=declared.type_params,
        params=declared.params,
        constructor=constructor,
        locals=tuple(local),
        states=tuple(states),
    )


def _state(cursor: Cursor, notes: n.Annotations) -> n.State:
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

        # A transition ends the state; what stands behind it is an error below.
        if cursor.at("transition"):
            transition = _transition(cursor)
            break

        statements.append(statement(cursor))

    cursor.expect("}", "after the transition")
    return n.State(head, notes, name=name.text, statements=tuple(statements), transition=transition)


def _transition(cursor: Cursor) -> n.Transition:
    """`transition (name; | select (keys) { case* })`."""
    start = cursor.take().span
    if not cursor.accept("select"):
        name = cursor.expect_name("a state or 'select'")
        cursor.expect(";", "after the transition")
        return n.Transition(name.span, name.text, (), None)

    cursor.expect("(", "after 'select'")
    keys = comma_list(cursor, ")", expression)
    cursor.expect("{", "to begin the cases")
    cases: list[n.SelectCase] = []

    while not cursor.accept("}"):
        cases.append(_select_case(cursor))

    cursor.accept(";")
    return n.Transition(cursor.since(start), "", keys, tuple(cases))


def _select_case(cursor: Cursor) -> n.SelectCase:
    start = cursor.span
    keys = key_set(cursor)
    cursor.expect(":", "after what a case matches")
    name = cursor.expect_name("a state")
    cursor.expect(";", "after a case")

    return n.SelectCase(cursor.since(start), keys, name.text, name.span)


def _control(cursor: Cursor, notes: n.Annotations) -> n.Control | n.BlockType:
    """`control name [<T>] (params) (; | [(params)] { local* apply block })`."""
    # "is already declared" points at the name of a control alone.
    name_span = cursor.peek().span
    declared = _block_type(cursor, notes)
    if cursor.accept(";"):
        return _with_end(declared, cursor)

    constructor = _constructor(cursor)
    head = cursor.since(declared.span)
    cursor.expect("{", "to begin the control")
    local: list[n.Declaration] = []

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

    return n.Control(
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


def _local(cursor: Cursor, notes: n.Annotations) -> n.Declaration:
    """What may stand before the states of a parser or the `apply` of a control."""
    if cursor.at("const"):
        return constant(cursor, notes)
    if cursor.at("action"):
        return _action(cursor, notes)
    if cursor.at("table"):
        return table(cursor, notes)
    if cursor.at("value_set"):
        return _value_set(cursor, notes)

    declared = type_expression(cursor)
    if cursor.at("("):
        return _instance(cursor, notes, declared)

    return variable_tail(cursor, notes, declared)


def _value_set(cursor: Cursor, notes: n.Annotations) -> n.ValueSet:
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

    return n.ValueSet(cursor.since(start), notes, type=element, size=size, name=name.text)


def _constant(cursor: Cursor, notes: n.Annotations) -> n.Constant:
    return constant(cursor, notes)


# At the end, since the productions must exist.
_BY_KEYWORD: dict[str, Callable[[Cursor, n.Annotations], n.Declaration]] = {
    "const": _constant,
    "typedef": _typedef,
    "struct": _struct,
    "header": _struct,
    "header_union": _struct,
    "enum": _enum,
    "error": _name_list,
    "match_kind": _name_list,
    "extern": _extern,
    "action": _action,
    "package": _package,
    "parser": _parser,
    "control": _control,
}
