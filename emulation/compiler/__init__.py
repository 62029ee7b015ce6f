"""P4_16 for v1model to BMv2 JSON and P4Info, in Python.

    program = compile_file("router.p4", include_dirs=["include"], defines={"PORTS": "16"})
    program.json      what simple_switch and our softswitch load
    program.p4info    what P4Runtime's control plane needs

Phases, one package or module each: preprocessor, syntax (lexer, parser), semantics (names, types,
constants), midend (inlining, storage), backend (JSON, P4Info). Everything wrong with a program is
one `CompileError` with file, line, column, source line and caret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p4.config.v1 import p4info_pb2

from emulation.compiler.backend.json import bmv2_json
from emulation.compiler.backend.p4info import p4info
from emulation.compiler.diagnostics import CompileError, Location
from emulation.compiler.midend.program import lower_program
from emulation.compiler.preprocessor import preprocess
from emulation.compiler.semantics.declarations.program import check_program
from emulation.compiler.syntax.declarations import parse

__all__ = ["CompileError", "Program", "compile_file", "compile_source"]


@dataclass(frozen=True)
class Program:
    """A compiled program."""

    json: dict[str, Any]
    p4info: p4info_pb2.P4Info


def compile_file(
    path: str | Path,
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | None = None,
) -> Program:
    """Compile a P4 file.

    Quoted includes are searched next to the file first, then in `include_dirs`.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise CompileError(
            f"cannot read the program: {error.strerror}", location=Location(str(path), 1, 1, "")
        ) from error
    except UnicodeDecodeError as error:
        raise CompileError(
            "the program is not UTF-8 text", location=Location(str(path), 1, 1, "")
        ) from error

    return compile_source(text, str(path), include_dirs, defines)


def compile_source(
    text: str,
    name: str = "program.p4",
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | None = None,
) -> Program:
    """Compile the text of a program that is called `name` in messages."""
    try:
        # Each phase takes only what the one before returns, so a test can begin or stop at any of
        # them.
        source = preprocess(text, name, include_dirs, defines or {})
        switch = lower_program(check_program(parse(source)))
        return Program(bmv2_json(switch, name), p4info(switch))
    # The parser limits nesting (`syntax.cursor.MAX_DEPTH`), but every level costs the later phases
    # several frames; a traceback would be a bug.
    except RecursionError as error:
        raise CompileError(
            "the program is nested too deeply", location=Location(name, 1, 1, "")
        ) from error
