"""Tokens of P4_16 (language specification, 6.4)."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import NamedTuple

from ofan_p4.diagnostics import CompileError, Source, Span


class Kind(Enum):
    """The classes of tokens; keywords and punctuation share a class and differ by their text."""

    NAME = auto()
    NUMBER = auto()
    STRING = auto()
    SYMBOL = auto()
    END = auto()


class Token(NamedTuple):
    """One token; `text` is its exact spelling."""

    kind: Kind
    text: str
    span: Span


KEYWORDS = frozenset(
    """abstract action bit bool break const continue control default else enum error exit extern
    false for header header_union if in inout int match_kind out package parser return select
    string struct switch table this transition true tuple typedef value_set varbit void""".split()  # noqa: SIM905
)
"""Words that are never names; others (`apply`, `key`, `state`) mean something in one place only."""

# `>` is always a token of its own: the parser separates `bit<bit<8>>` from `a >> 2`.
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f\v]+|//[^\n]*|/\*.*?\*/)
    |(?P<number>[0-9][0-9a-zA-Z_]*)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<string>"(?:\\.|[^"\\])*")
    |(?P<symbol>\{\#\}|\+:|\.\.\.|&&&=?|<<=|\|\+\|=?|\|-\|=?|\+\+=?|\.\.|&&|\|\||==|!=|<=|>=|<<|[-+*%&|^]=|/(?!\*)=?|[-+*%&|^!~<>=?:;,.(){}\[\]@])
    """,
    re.VERBOSE | re.DOTALL,
)


def tokenize(source: Source) -> list[Token]:
    """Split the preprocessed text into tokens, the last of which is END.

    Raises CompileError on a stray character.
    """
    tokens: list[Token] = []
    text = source.text
    position = 0
    depth = 0

    while position < len(text):
        match = _TOKEN.match(text, position)
        # Inside an annotation any character is a token ("Annotations", unstructured), but an open
        # string stays an error.
        if match is None and (not depth or text[position] == '"'):
            raise CompileError(_complaint(text, position), Span(source, position, position + 1))

        group, end = (
            (match.lastgroup, match.end()) if match is not None else ("symbol", position + 1)
        )
        if group != "space":
            written = text[position:end]
            depth = _annotation_depth(depth, written, tokens)
            tokens.append(Token(_kind(group, written), written, Span(source, position, end)))

        position = end

    # END stands where the last token ends, so that "found end of file" does not point into trailing
    # comments.
    end_span = Span(
        source, tokens[-1].span.end if tokens else 0, tokens[-1].span.end if tokens else 0
    )
    return [*tokens, Token(Kind.END, "end of file", end_span)]


def _annotation_depth(depth: int, written: str, before: list[Token]) -> int:
    """Return how many parentheses of `@name(...)` are open after a token."""
    if depth:
        return depth + {"(": 1, ")": -1}.get(written, 0)

    # `@name(`: the parenthesis is taken, the name is before it, the at sign before that.
    return int(written == "(" and len(before) > 1 and before[-2].text == "@")


def _kind(group: str | None, text: str) -> Kind:
    if group == "name":
        return Kind.SYMBOL if text in KEYWORDS else Kind.NAME

    return {"number": Kind.NUMBER, "string": Kind.STRING}.get(group or "", Kind.SYMBOL)


def _complaint(text: str, position: int) -> str:
    if text.startswith("/*", position):
        return "this comment is never closed"
    if text[position] == '"':
        return "this string is never closed"

    return f"unexpected character {text[position]!r}"


_NUMBER = re.compile(
    r"(?:(?P<width>[0-9]+)(?P<sign>[ws]))?(?P<digits>0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|0[dD][0-9_]+|[0-9][0-9_]*)"
)
_BASES = {"x": 16, "b": 2, "o": 8, "d": 10}


class Number(NamedTuple):
    """An integer literal: width and sign are None where it is an arbitrary-precision `int`."""

    value: int
    width: int | None
    signed: bool


def number(token: Token) -> Number:
    """Read `[width (w|s)] [0x|0b|0o|0d] digits`; the value is not yet checked against the width."""
    match = _NUMBER.fullmatch(token.text)
    if match is None:
        raise CompileError(f"malformed number {token.text}", token.span)

    digits = match["digits"].replace("_", "").lower()
    # A leading 0 alone does not mean octal, unlike in C: that is `0o`.
    base = _BASES.get(digits[1], 10) if len(digits) > 1 and digits[0] == "0" else 10
    body = digits[2:] if len(digits) > 1 and digits[1] in _BASES and digits[0] == "0" else digits

    if not body or (base == 10 and len(body) > MAX_DECIMAL_DIGITS):
        raise CompileError(f"malformed number {token.text}", token.span)

    # Six digits are beyond any width that is allowed; more would only cost time.
    width = int(match["width"][:6]) if match["width"] else None
    return Number(int(body, base), width, match["sign"] == "s")


MAX_DECIMAL_DIGITS = 4000
"""More would make int() refuse; no header field comes near it."""

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def string(token: Token) -> str:
    """Return the value of a string literal."""
    return re.sub(
        r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), token.text[1:-1], flags=re.DOTALL
    )
