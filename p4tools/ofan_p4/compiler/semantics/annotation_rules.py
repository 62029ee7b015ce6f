"""The form that each annotation must have, also where nothing uses it."""

from __future__ import annotations

from collections.abc import Iterable

from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import Context, fail
from ofan_p4.compiler.syntax.cursor import Cursor, comma_list
from ofan_p4.compiler.syntax.expressions import expression
from ofan_p4.compiler.syntax.lexer import Kind, Token, number
from ofan_p4.compiler.syntax.nodes import Annotation

STRINGS = ("name", "brief", "description", "deprecated", "noWarn")
"""Annotations of one string."""

MAX_WIDTH = 1 << 16
"""Of what the control plane sees, in bits; ours."""

WITHOUT_BODY = ("hidden", "tableonly", "defaultonly")


def check_annotations(annotations: Iterable[Annotation], context: Context) -> None:
    """Check the annotations of a program that the compiler knows."""
    for item in annotations:
        if item.structured:
            continue

        if item.name in STRINGS:
            _string(item, context)
        elif item.name in WITHOUT_BODY and item.tokens:
            fail(f"@{item.name} has no arguments", item.span)
        elif item.name == "pkginfo" and not item.tokens:
            fail("@pkginfo needs pairs 'key = value'", item.span)
        elif item.name == "match":
            _match_kind(item, context)
        elif item.name == "p4runtime_translation":
            _translation(item)


def _string(item: Annotation, context: Context) -> None:
    end = Token(Kind.END, "end of the annotation", item.span)
    cursor = Cursor([*item.tokens, Token(Kind.SYMBOL, ")", item.span), end])
    values = comma_list(cursor, ")", expression)
    if len(values) != 1 or context.check(values[0]).type != ty.STRING:
        fail(f"@{item.name} needs one string", item.span)


def _match_kind(item: Annotation, context: Context) -> None:
    kinds = context.globals.match_kinds
    if len(item.tokens) != 1 or item.tokens[0].text not in kinds:
        fail("@match needs a match kind", item.span)


def _translation(item: Annotation) -> None:
    """`("uri", number | bit<number> | string)`."""
    kinds = [token.kind for token in item.tokens]
    texts = [token.text for token in item.tokens]
    is_type = (
        kinds[2:] == [Kind.NUMBER]
        or texts[2:] == ["string"]
        or (len(texts) == 6 and texts[2:4] == ["bit", "<"] and kinds[4] is Kind.NUMBER)
    )

    if kinds[:1] != [Kind.STRING] or texts[1:2] != [","] or not is_type:
        fail("@p4runtime_translation needs a URI and a width or 'string'", item.span)

    # P4Info has 32 bits for a width, and each value is padded to it.
    widths = [number(token).value for token in item.tokens[2:] if token.kind is Kind.NUMBER]
    if widths and max(widths) > MAX_WIDTH:
        fail(f"a width of {max(widths)}: at most {MAX_WIDTH:,} bits", item.span)
