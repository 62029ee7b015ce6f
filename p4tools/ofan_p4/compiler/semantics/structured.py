"""Structured annotations: `@name[1, "two"]` and `@name[key = value]`."""

from __future__ import annotations

from collections.abc import Iterable

from ofan_p4.compiler.semantics import typed as t
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import Context, fail
from ofan_p4.compiler.syntax.cursor import Cursor, comma_list
from ofan_p4.compiler.syntax.expressions import expression
from ofan_p4.compiler.syntax.lexer import Kind, Token
from ofan_p4.compiler.syntax.nodes import Annotation


def check_structured(
    annotations: Iterable[Annotation], context: Context
) -> dict[int, tuple[t.Pair, ...]]:
    """Return the pairs of every structured annotation, by its place in the text."""
    return {item.span.start: _pairs(item, context) for item in annotations if item.structured}


def _pairs(item: Annotation, context: Context) -> tuple[t.Pair, ...]:
    """Return (key, value) of a list, with empty keys, or of key-value pairs."""
    has_keys = len(item.tokens) > 1 and item.tokens[1].text == "="
    end = Token(Kind.END, "end of the annotation", item.span)
    cursor = Cursor([*item.tokens, Token(Kind.SYMBOL, "]", item.span), end])
    return comma_list(cursor, "]", lambda inner: _pair(inner, has_keys, context))


def _pair(cursor: Cursor, has_key: bool, context: Context) -> t.Pair:
    key = ""
    if has_key:
        key = cursor.expect_name("a key").text
        cursor.expect("=", "and the value of the key")

    written = expression(cursor)
    value = context.check(written)
    if not isinstance(value, t.Literal) or not _is_allowed(value.type):
        fail("a structured annotation holds known integers, strings and booleans", written.span)

    return key, value


def _is_allowed(type_: ty.Type) -> bool:
    return ty.is_numeric(type_) or type_ in (ty.BOOL, ty.STRING)
