"""The C preprocessor that P4 prescribes, by the library pcpp, with every line's origin kept.

pcpp gets the text without comments, as a comment in a macro would swallow the text behind it, and
with its strings of several lines taken apart (`strings`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pcpp

from ofan_p4.compiler.strings import prepare, restored, spliced
from ofan_p4.diagnostics import (
    CompileError,
    Location,
    Macros,
    Marker,
    Source,
    named,
)

P4INCLUDE = Path(__file__).parent / "p4include"


# Their include files exist for p4c, so a program with such a name is probably not misspelt.
ARCHITECTURES = ("psa", "pna", "ebpf_model", "ubpf_model", "xdp_model", "tna", "t2na", "dpdk")


MAX_EXPANSION = 200_000
"""Tokens that the macros between two directives may add: some double with every definition."""

MAX_INCLUDES = 100
"""Files inside each other."""

MOST_BYTES = 16 << 20
"""Of a file: a hundred times the largest program that we know of. /dev/zero has no end."""


def preprocess(
    text: str,
    name: str,
    include_dirs: Sequence[str | Path],
    defines: Mapping[str, str],
    undefines: Sequence[str] = (),
) -> Source:
    """Run the preprocessor over the text of file `name`.

    Raises CompileError at the directive that is wrong.
    """
    preprocessor = _begun(_Preprocessor(include_dirs, defines, undefines), text, name)
    lines: list[str] = []
    origin: list[tuple[str, int]] = []

    for file, line, piece in _pieces(preprocessor, name):
        first, *rest = piece.split("\n")
        # Every token knows its line, even where directives or an excluded branch have left none
        # behind: lines begin at tokens, they are not counted at newlines.
        if not origin or origin[-1] != (file, line):
            origin.append((file, line))
            lines.append("")

        lines[-1] += first
        for extra, more in enumerate(rest, start=1):
            origin.append((file, line + extra))
            lines.append(more)

    return Source(
        "\n".join(lines),
        origin,
        preprocessor.files,
        preprocessor.code,
        preprocessor.markers,
        preprocessor.asked.told(),
        tuple(path for path, is_file in preprocessor.probed.items() if is_file),
    )


def probed_files(
    text: str, name: str, include_dirs: Sequence[str | Path], defines: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the paths that the preprocessor looks at for includes, also those without a file.

    Of a program with an error, those that it has looked at before the error.
    """
    preprocessor = _begun(_Preprocessor(include_dirs, defines), text, name)
    with suppress(CompileError):
        for _ in _pieces(preprocessor, name):
            pass

    return tuple(preprocessor.probed)


def _begun(preprocessor: _Preprocessor, text: str, name: str) -> _Preprocessor:
    """Give a preprocessor the text of the file `name`."""
    # pcpp searches this path for quoted includes only, before those given with -I.
    preprocessor.temp_path.insert(0, os.path.dirname(os.path.abspath(name)))
    preprocessor.parse(text, name)
    return preprocessor


def with_markers(source: Source) -> str:
    """Return preprocessed text with markers of each line's origin."""
    lines: list[str] = []
    expected: tuple[str, int] | None = None

    for text, origin in zip(source.text.split("\n"), source.origin, strict=False):
        file, line = named(source.markers, *origin)
        if not text.strip():
            continue

        # A few blank lines are shorter than a marker, as the C preprocessor has it.
        gap = line - expected[1] if expected and expected[0] == file else -1
        lines += [""] * gap if 0 <= gap <= MAX_GAP else [f'# {line} "{file}"']
        lines.append(text.rstrip())
        expected = (file, line + 1)

    return "\n".join(lines) + "\n"


MAX_GAP = 7


def _pieces(preprocessor: _Preprocessor, name: str) -> Iterator[tuple[str, int, str]]:
    """Yield (file, line, text) of every token that survives."""
    try:
        while token := preprocessor.token():
            yield getattr(token, "source", None) or name, token.lineno, restored(token.value)
    except CompileError:
        raise
    # pcpp evaluates `#if` itself and raises whatever Python does there.
    except Exception as error:
        raise CompileError(
            f"the preprocessor failed: {error}", location=preprocessor.place(name, 1)
        ) from error


class _Macros(dict[str, Any]):
    """The macros as they are now, with a record of the use of the command line's macros."""

    def __init__(self, macros: Mapping[str, Any], unread: Iterable[str]) -> None:
        super().__init__(macros)
        self._unread = set(unread)
        self._replaced: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self._unread.discard(str(name))
        return super().__contains__(name)

    def __setitem__(self, name: str, macro: Any) -> None:
        if name in self._unread:
            self._unread.discard(name)
            self._replaced.add(name)

        super().__setitem__(name, macro)

    def told(self) -> Macros:
        """Return the record."""
        return Macros(frozenset(self._unread), frozenset(self._replaced), tuple(sorted(self)))


class _Preprocessor(pcpp.Preprocessor):  # type: ignore[misc]
    """pcpp with errors raised, file texts remembered, line markers read, and bounds."""

    macros: dict[str, Any]

    def __init__(
        self,
        include_dirs: Sequence[str | Path],
        defines: Mapping[str, str],
        undefines: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.files: dict[str, list[str]] = {}
        self.code: dict[str, list[str]] = {}
        self.markers: dict[str, list[Marker]] = {}
        self.probed: dict[str, bool] = {}
        self._has_folders = bool(include_dirs)
        for folder in (*include_dirs, P4INCLUDE):
            self.add_path(str(folder))

        # p4c defines this macro for BMv2, and programs for several targets ask for it.
        for key, value in {"__TARGET_BMV2__": "1", **defines}.items():
            self.define(f"{key} {value}")

        for key in undefines:
            self.macros.pop(key, None)

        self.macros = self.asked = _Macros(self.macros, {*defines} - {*undefines})

    def place(self, file: str, line: int) -> Location:
        """Return the start of a line as a location."""
        lines = self.files.get(file, [])
        shown = lines[line - 1] if 0 < line <= len(lines) else ""
        return Location(*named(self.markers, file, line), 1, shown)

    def parsegen(self, text: str, source: str | None = None, abssource: str | None = None) -> Any:
        name = _display_name(abssource) if abssource else source or ""
        self.files[name] = text.splitlines()
        prepared = prepare(spliced(text))
        self.code[name] = prepared.seen
        if self.include_depth > MAX_INCLUDES:
            raise CompileError(
                "files include each other without an end", location=self.place(name, 1)
            )

        # pcpp names files in its tokens relative to a search path; messages have names of our own.
        if abssource:
            self.rewrite_paths = [(re.escape(abssource) + "$", lambda _: name)]

        return super().parsegen("\n".join(prepared.fed), name, abssource)

    def expand_macros(self, tokens: list[Any], expanding_from: Sequence[str] = ()) -> list[Any]:
        """Expand the macros in a list of tokens; a CompileError where they have no end."""
        before = len(tokens)
        expanded: list[Any] = super().expand_macros(tokens, list(expanding_from))
        # Inner expansions come first, so it is found before much has been made.
        if len(expanded) - before > MAX_EXPANSION:
            where = expanded[0]
            raise CompileError(
                "this macro expands to too much", location=self.place(where.source, where.lineno)
            )

        return expanded

    def on_error(self, file: str, line: int, msg: str) -> None:
        raise CompileError(msg, location=self.place(file, line))

    def on_include_not_found(
        self, is_malformed: bool, is_system_include: bool, curdir: str, includepath: str
    ) -> None:
        file = getattr(self, "source", None) or ""
        line = getattr(self, "linedepth", 0)
        # pcpp does not give the directive's place, so it is looked for in the files read so far.
        for candidate, lines in self.files.items():
            for number, content in enumerate(lines, start=1):
                if (
                    content.lstrip().startswith("#")
                    and "include" in content
                    and includepath in content
                ):
                    file = candidate
                    line = number

        hint = "" if self._has_folders else "; -I DIR searches a folder"
        if Path(includepath).stem in ARCHITECTURES:
            hint = "; v1model is the only architecture"

        raise CompileError(
            f"cannot find the file to include: {includepath}{hint}",
            location=self.place(file, max(1, line)),
        )

    def on_file_open(self, is_system_include: bool, includepath: str) -> Any:
        """Open a file to include, but no device or pipe, which may never end."""
        self.probed[includepath] = os.path.isfile(includepath)
        if not self.probed[includepath]:
            raise OSError(f"not a file: {includepath}")

        refuse_too_large(includepath, os.path.getsize(includepath))

        return super().on_file_open(is_system_include, includepath)

    def on_directive_unknown(
        self, directive: Any, toks: Any, ifpassthru: Any, precedingtoks: Any
    ) -> Any:
        """Raise the message of `#error`, or that C has no such directive; `#warning` passes."""
        if directive.value == "warning" or self._marker(directive, toks):
            return True

        text = "".join(token.value for token in toks).strip()

        message = f"#error {text}"
        if directive.value != "error":
            message = f"unknown directive #{directive.value}"

        raise CompileError(message, location=self.place(directive.source, directive.lineno))

    def _marker(self, directive: Any, toks: Any) -> bool:
        """Take `#line 5 "file"` or `# 5 "file" 1`; say whether it is such a directive."""
        parts = [directive, *(token for token in toks if token.value.strip())]
        if directive.value == "line":
            del parts[0]

        if not parts or not parts[0].value.isdigit():
            return False

        file = parts[1].value.strip('"') if len(parts) > 1 else ""
        self.markers.setdefault(directive.source, []).append(
            Marker(directive.lineno, int(parts[0].value), file)
        )
        return True


def refuse_too_large(path: str | Path, size: int) -> None:
    """Raise CompileError for a file that no program has."""
    if size > MOST_BYTES:
        raise CompileError(
            f"the program has more than {MOST_BYTES >> 20} MiB",
            location=Location(str(path), 1, 1, ""),
        )


def _display_name(path: str) -> str:
    """Return how messages name a file: the shipped ones bare, others relative to here if below."""
    if Path(path).parent == P4INCLUDE:
        return Path(path).name

    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative
