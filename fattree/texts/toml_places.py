"""Say in which line of a TOML text each key, table and element of a list stands.

tomllib keeps no positions. The text is known to be TOML, so that this reads its keys, brackets and
ends of values only.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KeyPath = tuple[Any, ...]
TOKEN = re.compile(
    r'''(?P<string>"""(?:\\.|[^\\])*?"{3,5} | \'\'\'.*?'{3,5} | "(?:\\.|[^"\\])*" | '[^']*')
    | (?P<comment>\#[^\n]*)
    | (?P<line>\n)
    | (?P<mark>[\[\]{}=,])
    | (?P<bare>[^\s\[\]{}=,"'\#]+)''',
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """A word or a mark of the text, and its line, from 1 on."""

    kind: str
    text: str
    line: int


def lines_of(text: str) -> dict[KeyPath, int]:
    """Return the line, from 1 on, of each key of a TOML text, by its path.

    Elements of lists have their numbers in paths: `("failures", "events", 1, "down_ns")`. A table
    or list that is there several times has its first line.
    """
    return _Reader(text).places


class _Reader:
    """Reads a text once, from its first token to its last."""

    def __init__(self, text: str) -> None:
        self.places: dict[KeyPath, int] = {}
        self._tokens = list(_tokens(text))
        self._next = 0
        self._tables: Counter[KeyPath] = Counter()

        table: KeyPath = ()
        while self._skip_lines():
            if self._peek() == "[":
                table = self._header()
            else:
                self._entry(table)

    def _peek(self) -> str:
        """Return the mark that comes next, nothing for a word or the end."""
        if self._next == len(self._tokens):
            return ""

        token = self._tokens[self._next]
        return token.text if token.kind != "string" else ""

    def _take(self) -> Token:
        self._next += 1
        return self._tokens[self._next - 1]

    def _skip_lines(self) -> bool:
        """Go to the next token in this or a later line; return whether a token is left."""
        while self._peek() == "\n":
            self._next += 1

        return self._next < len(self._tokens)

    def _header(self) -> KeyPath:
        """Read `[a.b]` or `[[a.b]]`; return the table's path, with the numbers of elements."""
        line = self._take().line
        is_element = self._peek() == "["
        self._next += is_element
        key = self._key()
        self._next += 1 + is_element

        self._tables[key] += is_element
        path: KeyPath = ()
        for length, part in enumerate(key, start=1):
            path += (part,)
            self.places.setdefault(path, line)
            if count := self._tables[key[:length]]:
                path += (count - 1,)
                self.places.setdefault(path, line)

        return path

    def _key(self) -> KeyPath:
        """Read `a.b`, `a . "b"` and so on: words and text until a mark."""
        parts: list[str] = []
        while self._peek() not in ("=", "]"):
            parts += _names(self._take())

        return tuple(parts)

    def _entry(self, table: KeyPath) -> None:
        """Read `a.b = value`."""
        line = self._tokens[self._next].line
        path = table
        for part in self._key():
            path += (part,)
            self.places.setdefault(path, line)

        # The equals sign.
        self._next += 1
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        if self._peek() in ("[", "{"):
            self._collection(path, is_list=self._take().text == "[")
            return

        # A date and its time are two tokens.
        while self._next < len(self._tokens) and self._peek() not in ("\n", ",", "]", "}"):
            self._next += 1

    def _collection(self, path: KeyPath, is_list: bool) -> None:
        number = 0
        while self._skip_lines() and self._peek() not in ("]", "}"):
            if is_list:
                element = (*path, number)
                self.places[element] = self._tokens[self._next].line
                self._value(element)
                number += 1
            else:
                self._entry(path)

            self._skip_lines()
            self._next += self._peek() == ","

        # The closing bracket.
        self._next += 1


def _tokens(text: str) -> Iterator[Token]:
    line = 1
    for match in TOKEN.finditer(text):
        kind = str(match.lastgroup)
        if kind != "comment":
            yield Token(kind, match[0], line)

        line += match[0].count("\n")


def _names(token: Token) -> list[str]:
    """Return the parts of a key in a token: a text is a part, a word has parts between points."""
    if token.kind == "string":
        return [str(tomllib.loads(f"key = {token.text}")["key"])]

    return [part for part in token.text.split(".") if part]
