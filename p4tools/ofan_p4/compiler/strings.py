"""Text that the C preprocessor must not see: comments, and strings of several lines.

Comments become blanks, so that everything else keeps its line and column. C knows no strings of
several lines, but P4 does, and programs have `#if` in the middle of them: every line of such a
string becomes a string of its own, with a mark that `whole` takes away again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# Control characters that no program has.
_BEGIN, _MIDDLE, _END = "\x01", "\x02", "\x03"

_TOKEN = re.compile(r'(?P<string>"(?:\\.|[^"\\])*")|(?P<line>//.*)|(?P<comment>/\*)|(?P<open>")')
_STRING_END = re.compile(r'(?:\\.|[^"\\])*"')
_DIRECTIVE = re.compile(
    r"[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|else|endif|define|undef|include|line|[0-9]+)\b"
)
# A quote elsewhere is a mistake, or text that an `#if 0` hides, and must not swallow the text
# behind it.
_MAY_OPEN = ("(", "[", ",", "=", "+", "{")
_CONTINUED = re.compile(r"(?:[^\n]*\\[ \t]*\r?\n)+[^\n]*")
_CONTINUATION = re.compile(r"\\[ \t]*\r?\n")


def spliced(text: str) -> str:
    """Join lines that end in a backslash, even in the middle of a name, and make up for them."""
    return _CONTINUED.sub(
        lambda matched: (
            _CONTINUATION.sub("", matched[0]) + "\n" * len(_CONTINUATION.findall(matched[0]))
        ),
        text,
    )


def restored(token: str) -> str:
    """Return a token of the preprocessor as it stands in the program."""
    match token[1:2]:
        case "\x01":
            return '"' + token[2:-1]
        case "\x02":
            return token[2:-1]
        case "\x03":
            return token[2:]
        case _:
            return token


@dataclass(slots=True)
class Prepared:
    """A text line by line: `fed` is for the preprocessor, `seen` the same without marks."""

    fed: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)


def prepare(text: str) -> Prepared:
    """Blank the comments of a text and mark its strings of several lines."""
    scanner = _Scanner()
    lines = text.split("\n")
    for line in lines:
        scanner.line(line)

    # An unclosed string or comment is left to the lexer, which reports its beginning.
    if scanner.inside == "comment":
        row, fed, seen = scanner.opened
        rest = lines[row][seen:]
        scanner.prepared.fed[row:] = [scanner.prepared.fed[row][:fed] + rest, *lines[row + 1 :]]

    return scanner.prepared


@dataclass(slots=True)
class _Scanner:
    prepared: Prepared = field(default_factory=Prepared)
    inside: str = ""
    # Row and columns (fed, seen) of a comment that is open.
    opened: tuple[int, int, int] = (0, 0, 0)
    _fed: str = ""
    _seen: str = ""
    # The row of a directive in which a comment is open.
    _directive: int | None = None

    def line(self, line: str) -> None:
        self._fed = self._seen = ""
        if self.inside == "string" and _DIRECTIVE.match(line):
            self._add(line)
        else:
            column = 0
            while column < len(line):
                column = self._piece(line, column)

        # A comment does not end a directive: the text behind it belongs to the line above.
        if self._directive is not None and self._directive < len(self.prepared.fed):
            self.prepared.fed[self._directive] += self._fed
            self._fed = ""

        if self.inside != "comment":
            self._directive = None

        self.prepared.fed.append(self._fed)
        self.prepared.seen.append(self._seen)

    def _add(self, text: str, mark: str = "") -> None:
        self._fed += f'"{mark}{text}"' if mark else text
        self._seen += text

    def _piece(self, line: str, column: int) -> int:
        """Take the text at a column; return the column behind it."""
        match self.inside:
            case "string":
                return self._string(line, column)
            case "comment":
                return self._comment(line, column)
            case _:
                return self._code(line, column)

    def _string(self, line: str, column: int) -> int:
        matched = _STRING_END.match(line, column)
        if matched is None:
            self._add(line[column:], _MIDDLE)
            return len(line)

        self.inside = ""
        # The mark stands for the quote that the token has anyway.
        self._fed += f'"{_END}{matched[0][:-1]}"'
        self._seen += matched[0]
        return matched.end()

    def _comment(self, line: str, column: int) -> int:
        end = line.find("*/", column)
        if end < 0:
            self._add(" " * (len(line) - column))
            return len(line)

        self.inside = ""
        self._add(" " * (end + 2 - column))
        return end + 2

    def _code(self, line: str, column: int) -> int:
        matched = _TOKEN.search(line, column)
        if matched is None:
            self._add(line[column:])
            return len(line)

        self._add(line[column : matched.start()])
        match matched.lastgroup:
            case "string":
                self._add(matched[0])
            case "line":
                self._add(" " * len(matched[0]))
            case "comment":
                self.inside = "comment"
                if line.lstrip().startswith("#"):
                    self._directive = len(self.prepared.fed)

                self.opened = (len(self.prepared.fed), len(self._fed), len(self._seen))
                self._add("  ")
            case _ if self._seen.rstrip().endswith(_MAY_OPEN):
                self.inside = "string"
                self._fed += f'"{_BEGIN}{line[matched.end() :]}"'
                self._seen += line[matched.start() :]
                return len(line)
            case _:
                self._add('"')

        return matched.end()
