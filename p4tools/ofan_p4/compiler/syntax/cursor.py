"""A position in the tokens, with the questions and complaints that every production needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from ofan_p4.compiler.syntax.lexer import Kind, Token
from ofan_p4.compiler.syntax.nodes import Annotation
from ofan_p4.diagnostics import CompileError, Span

T = TypeVar("T")

MAX_DEPTH = 4000
"""Productions inside each other; the stack of the compiler's thread has room for them."""


@dataclass
class Cursor:
    """Tokens, where the parser stands, and the names known to be types, as the grammar needs."""

    tokens: list[Token]
    position: int = 0
    type_names: set[str] = field(default_factory=set)
    depth: int = 0
    # All of the program, by their place in the text.
    annotations: dict[int, Annotation] = field(default_factory=dict)

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    @property
    def span(self) -> Span:
        return self.tokens[self.position].span

    @property
    def previous(self) -> Span:
        return self.tokens[max(0, self.position - 1)].span

    def since(self, start: Span) -> Span:
        """Return the span from `start` to the last token taken."""
        return start.to(self.previous)

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)]

    def at(self, *texts: str) -> bool:
        """Return whether the next token is any of these symbols or keywords."""
        token = self.tokens[self.position]
        return token.text in texts and token.kind is Kind.SYMBOL

    def at_word(self, *texts: str) -> bool:
        """Return whether the next token is any of these words, keyword or not."""
        token = self.tokens[self.position]
        return token.text in texts and token.kind in (Kind.NAME, Kind.SYMBOL)

    def at_name(self) -> bool:
        return self.tokens[self.position].kind is Kind.NAME

    def take(self) -> Token:
        token = self.tokens[self.position]
        # END is never passed, so every production may look at the next token without a check.
        if token.kind is not Kind.END:
            self.position += 1

        return token

    def accept(self, *texts: str) -> bool:
        """Take the next token if it is any of these."""
        if self.at(*texts):
            self.position += 1
            return True

        return False

    def expect(self, text: str, where: str = "") -> Token:
        """Take the next token, which must be `text`."""
        # `at_word` for words such as `priority`, which are names except in their place.
        if not self.at_word(text) and not self.at(text):
            self.fail(
                f"expected '{text}'{' ' + where if where else ''}, found {describe(self.token)}"
            )

        return self.take()

    def expect_name(self, noun: str) -> Token:
        """Take a name; `_` is a name only for a type that is to be inferred."""
        if not self.at_name() or (self.token.text == "_" and noun != "a type"):
            self.fail(f"expected {noun}, found {describe(self.token)}")

        return self.take()

    def fail(self, message: str) -> NoReturn:
        raise CompileError(message, self.span)

    def attempt(self, production: Callable[[Cursor], T]) -> T | None:
        """Try a production; stay where we are and return None if it does not apply."""
        position = self.position
        depth = self.depth
        # The depth as well: a production may fail anywhere inside of others.
        try:
            return production(self)
        except CompileError:
            self.position = position
            self.depth = depth
            return None

    def deeper(self) -> None:
        """Enter a nested production; balanced by `shallower`."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail("this is nested too deeply")

    def shallower(self) -> None:
        self.depth -= 1


def comma_list(cursor: Cursor, close: str, item: Callable[[Cursor], T]) -> tuple[T, ...]:
    """`item (, item)* [,] close`, or just `close`; takes the closing token."""
    items: list[T] = []
    while not cursor.at(close):
        items.append(item(cursor))
        if not cursor.accept(","):
            break

    if not cursor.at(close):
        cursor.fail(f"expected ',' or '{close}', found {describe(cursor.token)}")

    cursor.take()
    return tuple(items)


def describe(token: Token) -> str:
    """Return how a message names a token."""
    return token.text if token.kind is Kind.END else f"'{token.text}'"
