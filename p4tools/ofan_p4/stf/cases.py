"""One test: a program and a script, compiled, run and judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from ofan_p4.bounded import read_bytes
from ofan_p4.compiler import CompileError, compile_file
from ofan_p4.softswitch.base.errors import SoftswitchError
from ofan_p4.stf.bench import Bench
from ofan_p4.stf.compare import first_difference
from ofan_p4.stf.script import CheckFailed, ScriptError, parse_script


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a test; `unsupported` is a program or a command that we refuse."""

    program: str
    script: str
    status: str
    detail: str = ""
    seconds: float = 0.0


def find_cases(folder: Path) -> list[tuple[Path, Path]]:
    """Return the pairs `NAME.p4`, `NAME.stf` in a folder and its sub-folders, by name."""
    scripts = sorted(folder.rglob("*.stf"))
    return [
        (script.with_suffix(".p4"), script)
        for script in scripts
        if script.with_suffix(".p4").is_file()
    ]


def run_case(program: Path, script: Path, include_dirs: Sequence[str | Path] = ()) -> Verdict:
    """Compile the program, run the script, compare.

    Raises OSError and UnicodeDecodeError for unreadable files.
    """
    start = monotonic()
    status, detail = _judge(program, read_bytes(script).decode(), include_dirs)
    return Verdict(
        str(program),
        script=str(script),
        status=status,
        detail=detail,
        seconds=round(monotonic() - start, 3),
    )


def _judge(program: Path, text: str, include_dirs: Sequence[str | Path]) -> tuple[str, str]:
    try:
        commands = parse_script(text).commands
        compiled = compile_file(program, include_dirs)
        bench = Bench(compiled.json)

        # All sent frames are kept; they are compared at the end, as the format has it.
        for command in commands:
            bench.run(command)
    except (CompileError, SoftswitchError, ScriptError) as error:
        return "unsupported", str(error)
    except CheckFailed as failure:
        return "failed", str(failure)

    difference = first_difference(compiled.json, bench.expected, bench.sent)
    return ("failed", difference) if difference else ("passed", "")
