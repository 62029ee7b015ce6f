"""Declarations and the whole program."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ofan_p4.compiler.hints import misspelt_keyword
from ofan_p4.compiler.syntax import declaration_nodes as nd
from ofan_p4.compiler.syntax import nodes as n
from ofan_p4.compiler.syntax.annotations import annotation_list
from ofan_p4.compiler.syntax.blocks import control, package, parser
from ofan_p4.compiler.syntax.cursor import Cursor, comma_list
from ofan_p4.compiler.syntax.expressions import expression, type_expression, type_params
from ofan_p4.compiler.syntax.functions import action, extern, instance, method_tail, new_type_name
from ofan_p4.compiler.syntax.lexer import Kind, tokenize
from ofan_p4.compiler.syntax.statements import block, constant
from ofan_p4.diagnostics import CompileError, Source

T = TypeVar("T")


def parse(source: Source) -> nd.Program:
    """Parse a preprocessed program; raises CompileError at the first token that does not fit."""
    cursor = Cursor(tokenize(source))
    start = cursor.span
    declarations: list[nd.Declaration] = []

    while cursor.token.kind is not Kind.END:
        if not cursor.accept(";"):
            declarations.append(_hinted(cursor))

    annotations = tuple(cursor.annotations[position] for position in sorted(cursor.annotations))
    return nd.Program(cursor.since(start), tuple(declarations), annotations)


def _hinted(cursor: Cursor) -> nd.Declaration:
    """Parse a declaration; an error names the word that may be a misspelt keyword."""
    start = cursor.position
    try:
        return _top_level(cursor)
    except CompileError as error:
        error.add(misspelt_keyword(cursor.tokens, start, cursor.position))
        raise


def _top_level(cursor: Cursor) -> nd.Declaration:
    notes = annotation_list(cursor)
    token = cursor.token
    # `type` is no keyword in our lexer, since v1model uses it as the name of parameters.
    if token.text == "type" and token.kind is Kind.NAME and cursor.peek().text not in ("<", "("):
        return _typedef(cursor, notes)

    # `error { ... }` declares errors, `error f()` is a function that returns an error.
    is_error_type = token.text == "error" and cursor.peek().text != "{"
    if token.kind is Kind.SYMBOL and token.text in _BY_KEYWORD and not is_error_type:
        return _BY_KEYWORD[token.text](cursor, notes)

    return _function_or_instance(cursor, notes)


def _function_or_instance(cursor: Cursor, notes: n.Annotations) -> nd.Declaration:
    """`type name [<T>] (params) block | type (args) name;`."""
    start = cursor.span
    declared = type_expression(cursor)
    if cursor.at("("):
        return instance(cursor, notes, declared)

    method = method_tail(cursor, notes, declared)
    body = block(cursor)
    return nd.Function(cursor.since(start), method, body)


# Types


def _typedef(cursor: Cursor, notes: n.Annotations) -> nd.Typedef:
    """`(typedef | type) type name;`."""
    keyword = cursor.take()
    target = type_expression(cursor)
    name = new_type_name(cursor, "the name of the type")
    cursor.expect(";", "after the type")

    return nd.Typedef(
        cursor.since(keyword.span), notes, type=target, name=name, distinct=keyword.text == "type"
    )


def _struct(cursor: Cursor, notes: n.Annotations) -> nd.Struct:
    """`(struct | header | header_union) name [<T>] { field* }`."""
    keyword = cursor.take()
    name = new_type_name(cursor, f"the name of the {keyword.text}")
    params = type_params(cursor)
    cursor.expect("{", "to begin the fields")
    fields: list[nd.Field] = []

    while not cursor.accept("}"):
        fields.append(_field(cursor))

    return nd.Struct(
        cursor.since(keyword.span),
        notes,
        kind=keyword.text,
        name=name,
        type_params=params,
        fields=tuple(fields),
    )


def _field(cursor: Cursor) -> nd.Field:
    notes = annotation_list(cursor)
    declared = type_expression(cursor)
    name = cursor.expect_name("the name of a field")
    cursor.expect(";", "after a field")

    return nd.Field(declared.span.to(name.span), notes, declared, name.text)


def _enum(cursor: Cursor, notes: n.Annotations) -> nd.EnumDeclaration:
    """`enum [type] name { member [= value], ... }`."""
    start = cursor.take().span
    # `enum E {` or `enum bit<8> E {`: a name before the brace is the enum itself.
    underlying = None if cursor.at_name() and cursor.peek().text == "{" else type_expression(cursor)
    name = new_type_name(cursor, "the name of the enum")
    cursor.expect("{", "to begin the members")
    members = comma_list(cursor, "}", _enum_member)

    return nd.EnumDeclaration(
        cursor.since(start), notes, name=name, underlying=underlying, members=members
    )


def _enum_member(cursor: Cursor) -> nd.EnumMember:
    annotation_list(cursor)
    name = cursor.expect_name("a member")
    value = expression(cursor) if cursor.accept("=") else None

    return nd.EnumMember(name.span, name.text, value)


def _name_list(cursor: Cursor, notes: n.Annotations) -> nd.NameList:
    """`(error | match_kind) { name, ... }`."""
    keyword = cursor.take()
    cursor.expect("{", "to begin the names")
    names = comma_list(cursor, "}", lambda inner: inner.expect_name(f"a name of {keyword.text}"))

    return nd.NameList(
        cursor.since(keyword.span), keyword.text, tuple((name.text, name.span) for name in names)
    )


def _constant(cursor: Cursor, notes: n.Annotations) -> n.Constant:
    return constant(cursor, notes)


# At the end, since the productions must exist.
_BY_KEYWORD: dict[str, Callable[[Cursor, n.Annotations], nd.Declaration]] = {
    "const": _constant,
    "typedef": _typedef,
    "struct": _struct,
    "header": _struct,
    "header_union": _struct,
    "enum": _enum,
    "error": _name_list,
    "match_kind": _name_list,
    "extern": extern,
    "action": action,
    "package": package,
    "parser": parser,
    "control": control,
}
