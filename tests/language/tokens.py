"""P4 source as tokens, and reading them one after the other."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

Item = TypeVar("Item")

TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|\#[^\n]*)
    |(?P<number>(?:\d+[ws])?0[xX][0-9a-fA-F_]+|(?:\d+[ws])?0[bB][01_]+|(?:\d+[ws])?\d[\d_]*)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<text>"(?:[^"\\]|\\.)*")
    |(?P<mark>\|\+\|=?|\|-\|=?|<<=|&&&|&&|\|\||\+\+|==|!=|<=|>=|<<|\.\.|[-+*/%&|^]=|.)""",
    re.VERBOSE | re.DOTALL,
)


class Tokens:
    """The tokens of a source, and the place that has been reached."""

    def __init__(self, source: str) -> None:
        self.tokens = [
            (str(token.lastgroup), token.group(), token.start())
            for token in TOKEN.finditer(source)
            if token.lastgroup != "skip"
        ]
        self.tokens.append(("end", "", len(source)))
        self.position = 0

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)][1]

    def kind(self, ahead: int = 0) -> str:
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)][0]

    def take(self) -> str:
        text = self.peek()
        self.position += 1
        return text

    def accept(self, text: str) -> bool:
        if self.peek() != text:
            return False
        self.position += 1
        return True

    def expect(self, text: str) -> None:
        """Read this text; raises ValueError where another stands."""
        if not self.accept(text):
            around = " ".join(
                token[1] for token in self.tokens[self.position - 8 : self.position + 4]
            )
            raise ValueError(f"expected {text}, found {self.peek()!r} in: {around}")

    def listed(self, item: Callable[[], Item], end: str) -> tuple[Item, ...]:
        """Read items between commas up to `end`, which is consumed."""
        items: list[Item] = []
        while not self.accept(end):
            items.append(item())
            if not self.accept(","):
                self.expect(end)
                break

        return tuple(items)

    def annotations(self) -> list[tuple[str, list[str]]]:
        """Read annotations; return their names with the tokens in their parentheses."""
        pairs = []
        while self.accept("@"):
            name = self.take()
            inside: list[str] = []
            if self.accept("("):
                while not self.accept(")"):
                    inside.append(self.take())
            pairs.append((name, inside))

        return pairs
