"""Hints for words that are probably misspelt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from ofan_p4.compiler.syntax.lexer import KEYWORDS, Kind, Token

# Half a word in common is no misspelling: 'meta' is not meant to be 'data'.
CLOSE = 0.75
# They begin something in one place only, so that the lexer takes them for names.
WORDS = KEYWORDS | {
    "actions",
    "apply",
    "counters",
    "default_action",
    "entries",
    "implementation",
    "key",
    "size",
    "state",
    "type",
}
BEGINNINGS = frozenset("{};)")


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return the end of a message about an unknown word: the closest known word."""
    close = get_close_matches(word, set(candidates) - {word}, n=1, cutoff=CLOSE)
    return f"; did you mean '{close[0]}'?" if close else ""


def misspelt_keyword(tokens: Sequence[Token], start: int, end: int) -> str:
    """Return the end of a message about tokens that fit no production, up to the token `end`.

    The last word since `start` that begins something, stands nowhere else in the program and is
    close to a keyword is probably meant to be that keyword.
    """
    for i in range(min(end, len(tokens) - 1), start - 1, -1):
        token = tokens[i]
        begins = i == start or tokens[i - 1].text in BEGINNINGS
        if token.kind is not Kind.NAME or token.text in WORDS or not begins:
            continue

        close = get_close_matches(token.text, WORDS, n=1, cutoff=CLOSE)
        if close and sum(item.text == token.text for item in tokens) == 1:
            return f"; is '{token.text}' meant to be '{close[0]}'?"

    return ""
