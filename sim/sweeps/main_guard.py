"""Find out whether a script that starts processes would start them again in each of them."""

import ast
import sys
from pathlib import Path
from types import FrameType

import __main__

REMEDY = """\
{file}, line {line}: jobs > 1 starts processes, and each of them runs this script again.
Put what starts them behind a guard:

    if __name__ == "__main__":
        records = sweep(scenarios, jobs=2)

or use jobs=1."""


def refuse_unguarded() -> None:
    """End a script without a main guard with the lines that it needs, without a traceback.

    Processes are spawned: each imports the script under another name, for its definitions.
    Python's own message is three tracebacks, from each process.
    """
    file, frame = getattr(__main__, "__file__", None), _top_frame()
    # Without a file nothing is imported again, nor is a module of `python -m package`.
    spec = getattr(__main__, "__spec__", None)
    if file is None or frame is None or (spec and spec.name.endswith("__main__")):
        return

    text = Path(file).read_text(encoding="utf-8", errors="replace") if Path(file).is_file() else ""
    if text and not is_guarded(text, frame.f_lineno):
        raise SystemExit(REMEDY.format(file=file, line=frame.f_lineno))


def _top_frame() -> FrameType | None:
    """Return the frame in which the script itself runs, None where we are called from none."""
    frame: FrameType | None = sys._getframe()
    while frame and not (frame.f_globals is vars(__main__) and frame.f_code.co_name == "<module>"):
        frame = frame.f_back

    return frame


def is_guarded(text: str, line: int) -> bool:
    """Return whether the statement of a script at a line asks for `__name__` first."""
    try:
        statements = ast.parse(text).body
    # No text of Python, as in a packed program: the guard is unknown.
    except (SyntaxError, ValueError):
        return True

    return any(
        isinstance(statement, ast.If)
        and any(
            isinstance(node, ast.Name) and node.id == "__name__"
            for node in ast.walk(statement.test)
        )
        for statement in statements
        if statement.lineno <= line <= (statement.end_lineno or line)
    )
