"""P4_16 for v1model to BMv2 JSON and P4Info, in Python.

    program = compile_file("router.p4", include_dirs=["include"], defines={"PORTS": "16"})
    program.json      the input of simple_switch and our softswitch
    program.p4info    the input of P4Runtime's control plane

Phases, one package or module each: preprocessor, syntax (lexer, parser), semantics (names, types,
constants), midend (inlining, storage), backend (JSON, P4Info). Every mistake in a program is a
`CompileError` with file, line, column, source line and caret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2

from ofan_p4.compiler.backend.entries import initial_entries
from ofan_p4.compiler.backend.json import bmv2_json
from ofan_p4.compiler.backend.p4info import p4info
from ofan_p4.compiler.midend.program import lower_program
from ofan_p4.compiler.preprocessor import MOST_BYTES, preprocess, refuse_too_large
from ofan_p4.compiler.semantics.declarations.program import check_program
from ofan_p4.compiler.stack import with_deep_stack
from ofan_p4.compiler.syntax.declarations import parse
from ofan_p4.diagnostics import (
    NO_MACROS,
    CompileError,
    CompileWarning,
    Location,
    Macros,
    Source,
)

__all__ = [
    "CompileError",
    "CompileWarning",
    "Program",
    "compile_file",
    "compile_preprocessed",
    "compile_source",
    "read_source",
]


@dataclass(frozen=True)
class Program:
    """A compiled program."""

    json: dict[str, Any]
    p4info: p4info_pb2.P4Info
    entries: p4runtime_pb2.WriteRequest
    warnings: tuple[CompileWarning, ...] = ()
    macros: Macros = NO_MACROS
    included: tuple[str, ...] = ()


def compile_file(
    path: str | Path,
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | None = None,
) -> Program:
    """Compile a P4 file.

    Quoted includes are searched next to the file first, then in `include_dirs`.
    """
    return compile_source(read_source(path), str(path), include_dirs, defines)


def read_source(path: str | Path) -> str:
    """Return the text of a P4 file; raises CompileError where there is none."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(MOST_BYTES + 1)

        refuse_too_large(path, len(content))
        # Some editors put a byte order mark in front, which is no part of the program.
        return content.decode("utf-8-sig")
    except OSError as error:
        raise CompileError(
            f"cannot read the program: {error.strerror}", location=Location(str(path), 1, 1, "")
        ) from error
    except UnicodeDecodeError as error:
        raise CompileError(
            "the program is not UTF-8 text", location=Location(str(path), 1, 1, "")
        ) from error


def compile_source(
    text: str,
    name: str = "program.p4",
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | None = None,
    emit_externs: bool = False,
) -> Program:
    """Compile the text of a program that is called `name` in messages."""
    return compile_preprocessed(
        preprocess(text, name, include_dirs, defines or {}), name, emit_externs
    )


def compile_preprocessed(source: Source, name: str, emit_externs: bool = False) -> Program:
    """Compile the preprocessor's result.

    With `emit_externs`, externs that BMv2 does not know are left to it, or to a plug-in of it.
    """
    try:
        return with_deep_stack(lambda: _compile(source, name, emit_externs))
    # The parser limits nesting (`syntax.cursor.MAX_DEPTH`), but inlined calls can nest as well.
    except RecursionError as error:
        raise CompileError(
            "the program is nested too deeply", location=Location(name, 1, 1, "")
        ) from error


def _compile(source: Source, name: str, emit_externs: bool) -> Program:
    # Each phase takes only the result of the phase before, so a test can begin or stop at any of
    # them.
    checked = check_program(parse(source))
    switch = lower_program(checked, emit_externs)
    info = p4info(switch)

    return Program(
        bmv2_json(switch, name),
        info,
        initial_entries(switch, info),
        (*checked.warnings, *switch.warnings),
        source.macros,
        source.included,
    )
