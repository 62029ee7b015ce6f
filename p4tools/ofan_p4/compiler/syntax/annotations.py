"""Annotations; their contents stay tokens until a caller asks for them."""

from __future__ import annotations

from ofan_p4.compiler.syntax import nodes as n
from ofan_p4.compiler.syntax.cursor import Cursor, describe
from ofan_p4.compiler.syntax.lexer import Kind, Token
from ofan_p4.diagnostics import CompileError


def annotation_list(cursor: Cursor) -> n.Annotations:
    """`(@name [(tokens)] | @name[tokens])*`."""
    notes: list[n.Annotation] = []
    while cursor.at("@"):
        start = cursor.take().span
        name = cursor.take()
        # Keywords may name annotations too, punctuation may not.
        if name.kind not in (Kind.NAME, Kind.SYMBOL) or not (
            name.text[0].isalpha() or name.text[0] == "_"
        ):
            raise CompileError(
                f"expected the name of an annotation, found {describe(name)}", name.span
            )

        tokens, structured = _annotation_body(cursor)
        item = n.Annotation(cursor.since(start), name.text, tokens, structured)
        # "Structured annotations": a name once at most, and without an unstructured annotation.
        if any(
            item.name == earlier.name and (structured or earlier.structured) for earlier in notes
        ):
            raise CompileError(f"annotation '{item.name}' is given twice", item.span)

        notes.append(item)
        # By its place: an annotation that the parser tries twice is found twice.
        cursor.annotations[item.span.start] = item

    return tuple(notes)


def _annotation_body(cursor: Cursor) -> tuple[tuple[Token, ...], bool]:
    if not cursor.at("(", "["):
        return (), False

    opening = cursor.take().text
    tokens: list[Token] = []
    depth = 1

    while True:
        if cursor.token.kind is Kind.END:
            cursor.fail("this annotation is never closed")

        # Parentheses and brackets need not pair up with their own kind: their content is no
        # expression of the language.
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(
            cursor.token.text if cursor.token.kind is Kind.SYMBOL else "", 0
        )
        if depth == 0:
            cursor.take()
            return tuple(tokens), opening == "["

        tokens.append(cursor.take())
