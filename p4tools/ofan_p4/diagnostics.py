"""Source text, positions in it, and the one error of the compiler.

The preprocessor hands over one text made of many files. A `Source` remembers where every line of it
came from, so that a `Span` (two offsets) can be shown as file, line, column and caret of the
programmer's text.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

TAB_WIDTH = 4


class Macros(NamedTuple):
    """The use of the command line's macros, and the names of all macros at the end.

    Of no effect were those that nothing has asked for (`unread`), and those that the program
    defines anew before anything does (`replaced`).
    """

    unread: frozenset[str] = frozenset()
    replaced: frozenset[str] = frozenset()
    known: tuple[str, ...] = ()


NO_MACROS = Macros()


@dataclass(frozen=True, eq=False, repr=False)
class Source:
    """Preprocessed text.

    `origin[i]` is the (file, 1-based line) that line i of `text` came from; `markers` are the line
    markers of each file, by which another program names the text's origin.
    """

    text: str
    origin: list[tuple[str, int]]
    files: dict[str, list[str]] = field(default_factory=dict)
    # The same lines with their comments blanked, as the preprocessor saw them.
    code: dict[str, list[str]] = field(default_factory=dict)
    markers: dict[str, list[Marker]] = field(default_factory=dict)
    macros: Macros = NO_MACROS
    # The paths of the files that it includes.
    included: tuple[str, ...] = ()

    @cached_property
    def line_starts(self) -> list[int]:
        starts = [0]
        for index, char in enumerate(self.text):
            if char == "\n":
                starts.append(index + 1)

        return starts

    def location(self, offset: int) -> Location:
        """Map an offset of the preprocessed text to the programmer's text."""
        # The end of file is a place too: "expected ..., found end of file" points behind the last
        # token.
        row = bisect_right(self.line_starts, min(offset, len(self.text))) - 1
        start = self.line_starts[row]
        if not self.origin:
            return Location(next(iter(self.files), "the program"), 1, 1, "")

        file, line = self.origin[min(row, len(self.origin) - 1)]
        expanded = self.text[start:].split("\n", 1)[0]
        lines = self.files.get(file, [])
        # Text that no file holds is shown as it was preprocessed.
        original = lines[line - 1] if 0 < line <= len(lines) else expanded
        code = self.code.get(file, lines)
        seen = code[line - 1] if 0 < line <= len(code) else original
        column = _original_column(expanded, seen, offset - start) + 1
        name, number = named(self.markers, file, line)

        return Location(name, number, column, original)


class Marker(NamedTuple):
    """`# line "file"`: the origin of the lines below."""

    at: int
    line: int
    file: str


def named(markers: dict[str, list[Marker]], file: str, line: int) -> tuple[str, int]:
    """Return the file and line that the last marker above a place gives it."""
    above = [marker for marker in markers.get(file, ()) if marker.at < line]
    if not above:
        return file, line

    return above[-1].file or file, above[-1].line + line - above[-1].at - 1


def _original_column(expanded: str, original: str, column: int) -> int:
    """Undo a macro expansion in a line.

    Text before or after it keeps its place, text that it produced points at its name.
    """
    if expanded == original:
        return column

    prefix = _common_prefix(expanded, original)
    if column < prefix:
        return column

    # Reversed, the text behind the macro is a common prefix as well.
    suffix = _common_prefix(expanded[prefix:][::-1], original[prefix:][::-1])
    from_end = len(expanded) - column
    return max(prefix, len(original) - from_end) if from_end <= suffix else prefix


def _common_prefix(first: str, second: str) -> int:
    pairs = zip(first, second, strict=False)
    return next(
        (i for i, (left, right) in enumerate(pairs) if left != right), min(len(first), len(second))
    )


class Location(NamedTuple):
    """A place in a file of the programmer.

    Line and column count from 1, `text` is the whole line.
    """

    file: str
    line: int
    column: int
    text: str


class Span(NamedTuple):
    """A piece of the preprocessed text."""

    source: Source
    start: int
    end: int

    @property
    def location(self) -> Location:
        return self.source.location(self.start)

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    def to(self, last: Span) -> Span:
        """Return the span from here to the end of `last`."""
        return Span(self.source, self.start, max(self.end, last.end))


class CompileError(Exception):
    """An error of a program, with its place.

    `str()` is the full diagnostic with source line and caret.
    """

    def __init__(
        self, message: str, span: Span | None = None, location: Location | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.location = location or (
            span.location if span else Location("<command line>", 1, 1, "")
        )
        self.length = _length(span)

    def add(self, hint: str) -> None:
        """Add to the end of the message."""
        self.message += hint
        self.args = (self.message,)

    def __str__(self) -> str:
        return _diagnostic(self.location, "error", self.message, self.length)


@dataclass(frozen=True, slots=True)
class CompileWarning:
    """A probable mistake of a program that can be compiled nevertheless.

    `kind` is the word by which it can be disabled, or made an error.
    """

    kind: str
    message: str
    span: Span

    def __str__(self) -> str:
        text = f"{self.message} [{self.kind}]"
        return _diagnostic(self.span.location, "warning", text, _length(self.span))

    def as_error(self) -> CompileError:
        """Return the same as an error."""
        return CompileError(f"{self.message} [{self.kind}]", self.span)


def _length(span: Span | None) -> int:
    # Only the first line of a span is underlined: the caret stands under one source line.
    return max(1, len(span.text.split("\n", 1)[0])) if span else 1


def _diagnostic(where: Location, severity: str, message: str, length: int) -> str:
    head = f"{where.file}:{where.line}:{where.column}: {severity}: {message}"
    if not where.text:
        return head

    # Tabs count as in the line that is printed above, or the caret would stand left of its column.
    indent = len(where.text[: where.column - 1].expandtabs(TAB_WIDTH))
    shown = max(1, min(length, len(where.text) - where.column + 1))
    return f"{head}\n{where.text.expandtabs(TAB_WIDTH)}\n{' ' * indent}{'^' * shown}"
