"""Statements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ofan_p4.compiler.syntax import nodes as n
from ofan_p4.compiler.syntax.annotations import annotation_list
from ofan_p4.compiler.syntax.cursor import Cursor, comma_list, describe
from ofan_p4.compiler.syntax.expressions import (
    expression,
    key_set,
    postfix,
    simple_key,
    starts_type,
    type_expression,
)
from ofan_p4.compiler.syntax.lexer import Kind, Token
from ofan_p4.diagnostics import CompileError

ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", "|+|=", "|-|=")


def block(cursor: Cursor) -> n.Block:
    """`annotations { statement* }`."""
    notes = annotation_list(cursor)
    start = cursor.expect("{", "to begin a block").span
    statements: list[n.Statement] = []

    while not cursor.at("}"):
        if cursor.token.kind is Kind.END:
            raise CompileError("this '{' is never closed", start)

        statements.append(statement(cursor))

    cursor.take()
    return n.Block(cursor.since(start), notes, tuple(statements))


def statement(cursor: Cursor) -> n.Statement:
    """Parse any statement."""
    cursor.deeper()
    result = _statement(cursor)
    cursor.shallower()

    return result


def _statement(cursor: Cursor) -> n.Statement:
    token = cursor.token
    if cursor.at("{"):
        return block(cursor)
    if cursor.at("@"):
        return _annotated(cursor)
    if token.kind is Kind.SYMBOL and token.text in _BY_KEYWORD:
        return _BY_KEYWORD[token.text](cursor)
    if at_declaration(cursor):
        return variable(cursor, ())

    result = _assign_or_call(cursor)
    cursor.expect(";", "after a statement")
    return result


def _annotated(cursor: Cursor) -> n.Statement:
    # A block takes its annotations itself, so they are read again.
    position = cursor.position
    notes = annotation_list(cursor)
    if cursor.at("{"):
        cursor.position = position
        return block(cursor)

    return constant(cursor, notes) if cursor.at("const") else variable(cursor, notes)


def at_declaration(cursor: Cursor) -> bool:
    """Say whether a variable declaration begins here: a type, or two names in a row."""
    if cursor.at("error"):
        return cursor.peek().kind is Kind.NAME
    # `T.member ...` and `T(...)` begin expressions or calls.
    if starts_type(cursor):
        return cursor.peek().text not in (".", "(")

    return cursor.at_name() and cursor.peek().kind is Kind.NAME


def constant(cursor: Cursor, notes: n.Annotations) -> n.Constant:
    """`const type name = expression;`."""
    start = cursor.expect("const").span
    declared = type_expression(cursor)
    name = cursor.expect_name("the name of the constant")
    cursor.expect("=", "and the value of the constant")
    value = expression(cursor)
    cursor.expect(";", "after the constant")

    return n.Constant(cursor.since(start), notes, type=declared, name=name.text, value=value)


def variable(cursor: Cursor, notes: n.Annotations) -> n.Variable:
    """`type name [= expression];`."""
    declared = type_expression(cursor)
    return variable_tail(cursor, notes, declared)


def variable_tail(cursor: Cursor, notes: n.Annotations, declared: n.TypeExpression) -> n.Variable:
    """`name [= expression];`, after the type."""
    made = _named_value(cursor, notes, declared)
    cursor.expect(";", "after the declaration of a variable")

    return replace(made, span=cursor.since(declared.span))


def _named_value(cursor: Cursor, notes: n.Annotations, declared: n.TypeExpression) -> n.Variable:
    """`name [= expression]`, after the type."""
    name = cursor.expect_name("the name of a variable")
    value = expression(cursor) if cursor.accept("=") else None

    return n.Variable(
        cursor.since(declared.span),
        notes,
        type=declared,
        name=name.text,
        value=value,
        name_span=name.span,
    )


def _assign_or_call(cursor: Cursor) -> n.Statement:
    """`lvalue op expression | call`, without the semicolon."""
    start = cursor.span
    target = postfix(cursor)
    op = _assignment(cursor)

    if op is not None:
        value = expression(cursor)
        return n.Assign(cursor.since(start), target, op, value)

    if isinstance(target, n.Call):
        return n.CallStatement(target.span, target)

    return cursor.fail(f"expected '=' or a call, found {describe(cursor.token)}")


def _assignment(cursor: Cursor) -> str | None:
    if cursor.at(*ASSIGNMENTS):
        return cursor.take().text

    # The lexer leaves `>` alone, so `>>=` arrives as `>` and `>=`.
    if cursor.at(">") and cursor.peek().text == ">=":
        cursor.take()
        cursor.take()
        return ">>="

    return None


def _if(cursor: Cursor) -> n.If:
    """`if (expression) statement [else statement]`."""
    start = cursor.take().span
    cursor.expect("(", "after 'if'")
    condition = expression(cursor)
    cursor.expect(")", "after the condition")
    then = statement(cursor)
    otherwise = statement(cursor) if cursor.accept("else") else None

    return n.If(cursor.since(start), condition, then, otherwise)


def _return(cursor: Cursor) -> n.Return:
    start = cursor.take().span
    value = None if cursor.at(";") else expression(cursor)
    cursor.expect(";", "after 'return'")

    return n.Return(cursor.since(start), value)


def _simple(cursor: Cursor) -> n.Statement:
    token = cursor.take()
    if token.text != ";":
        cursor.expect(";", f"after '{token.text}'")

    match token.text:
        case "exit":
            return n.Exit(token.span)
        case "break":
            return n.Break(token.span)
        case "continue":
            return n.Continue(token.span)
        case _:
            return n.Empty(token.span)


def _constant(cursor: Cursor) -> n.Constant:
    return constant(cursor, ())


def _switch(cursor: Cursor) -> n.Switch:
    """`switch (expression) { (label: [block])* }`."""
    start = cursor.take().span
    cursor.expect("(", "after 'switch'")
    subject = expression(cursor)
    cursor.expect(")", "after the subject of 'switch'")
    cursor.expect("{", "to begin the cases")
    cases: list[n.SwitchCase] = []

    while not cursor.accept("}"):
        cases.append(_switch_case(cursor))

    return n.Switch(cursor.since(start), subject, tuple(cases))


def _switch_case(cursor: Cursor) -> n.SwitchCase:
    start = cursor.span
    labels: list[n.Expression] = []
    # Labels without a body fall through to the next ("Switch statement").
    while not cursor.at("{", "}"):
        labels.extend(key_set(cursor))
        cursor.expect(":", "after a label")

    if not labels:
        cursor.fail("expected a label of 'switch'")

    body = block(cursor) if cursor.at("{") else None
    return n.SwitchCase(cursor.since(start), tuple(labels), body)


def _for(cursor: Cursor) -> n.For | n.ForIn:
    """`for (init; condition; update) statement` or `for (type name in collection) statement`."""
    start = cursor.take().span
    cursor.expect("(", "after 'for'")
    # Both forms may begin with a type and a name; they differ by `in` only.
    if (head := cursor.attempt(_for_in_head)) is not None:
        declared, name, collection = head
        body = statement(cursor)
        return n.ForIn(
            cursor.since(start),
            type=declared,
            name=name.text,
            name_span=name.span,
            collection=collection,
            body=body,
        )

    init = _for_init(cursor)
    condition = expression(cursor)
    cursor.expect(";", "after the condition of 'for'")
    update = comma_list(cursor, ")", _assign_or_call)
    body = statement(cursor)

    return n.For(cursor.since(start), init=init, condition=condition, update=update, body=body)


def _for_init(cursor: Cursor) -> tuple[n.Statement, ...]:
    return comma_list(cursor, ";", _init_statement)


def _init_statement(cursor: Cursor) -> n.Statement:
    """`annotations type name = expression`, or an assignment or call."""
    notes = annotation_list(cursor)
    if notes or at_declaration(cursor):
        return _named_value(cursor, notes, type_expression(cursor))

    return _assign_or_call(cursor)


def _for_in_head(cursor: Cursor) -> tuple[n.TypeExpression, Token, n.Expression]:
    """`annotations type name in collection)`."""
    # They name a variable, which the control plane never sees.
    annotation_list(cursor)
    declared = type_expression(cursor)
    name = cursor.expect_name("the name of a variable")
    cursor.expect("in")
    collection = cursor.attempt(_list_cast) or simple_key(cursor)
    cursor.expect(")", "after the collection of 'for'")

    return declared, name, collection


def _list_cast(cursor: Cursor) -> n.Expression:
    """`(list<type>) { ... }`, which an expression cannot be: there are no values of lists."""
    start = cursor.expect("(").span
    if not cursor.at_word("list"):
        cursor.fail("expected 'list'")

    declared = type_expression(cursor)
    cursor.expect(")")
    return n.Cast(cursor.since(start), declared, expression(cursor))


# At the end, since the productions must exist.
_BY_KEYWORD: dict[str, Callable[[Cursor], n.Statement]] = {
    "if": _if,
    "return": _return,
    "exit": _simple,
    "break": _simple,
    "continue": _simple,
    ";": _simple,
    "switch": _switch,
    "for": _for,
    "const": _constant,
}
