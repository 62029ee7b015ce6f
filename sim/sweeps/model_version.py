"""The version of the model: which code gives which results.

The code of every module that a result depends on has a hash, without comments and docstrings.
A change that alters no result keeps the model's name: `python -m pages.fresh --keep` runs a sample
of the kept reports again and, where every value is equal, adds the new hash to `same_results.csv`.
So stores, reports and tables of the older code stay valid.
"""

import ast
import csv
import hashlib
import io
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Columns: the code's hash, the model with the same results, the number of compared runs.
SAME_RESULTS = Path(__file__).with_name("same_results.csv")
# The rooms that a result depends on. All their modules count, so that a new module needs no entry
# here; a test follows the imports.
MODEL_FOLDERS = (
    "fattree",
    "fattree/files",
    "fattree/shape",
    "fattree/experiment",
    "fattree/demand",
    "fattree/demand/workloads",
    "fattree/routes",
    "hostagent",
    "hostagent/transports",
    "sim/kernels",
    "sim/kernels/events",
    "sim/kernels/lb",
    "sim/arrays",
    "sim/programs",
    "sim/runs",
)


def model_files() -> list[Path]:
    """Return every module of ours that a result depends on."""
    return [path for folder in MODEL_FOLDERS for path in sorted((ROOT / folder).glob("*.py"))]


# Once a process: imported modules do not change with their files.
@cache
def model_version() -> str:
    """Return the name of the model's results: 64 hex digits.

    Two codes with equal results have one name, the hash of the first of them.
    """
    now = code_version()
    return same_results().get(now, now)


@cache
def code_version() -> str:
    """Return the hash of the model's code, module by module."""
    texts = (path.name + code(path.read_text(encoding="utf-8")) for path in model_files())
    return hashlib.sha256("".join(texts).encode()).hexdigest()


@cache
def source_version() -> str:
    """Return the hash of the model's files, which is cheap: equal files give equal results."""
    texts = (path.name.encode() + path.read_bytes() for path in model_files())
    return hashlib.sha256(b"".join(texts)).hexdigest()


@cache
def same_results() -> dict[str, str]:
    """Return the model with equal results for each later code, by the code's hash."""
    with SAME_RESULTS.open(encoding="utf-8", newline="") as lines:
        return {row["code"]: row["model"] for row in csv.DictReader(lines)}


def keep_model(model: str, runs: int) -> None:
    """Add the code of today to those that give the results of a model.

    `model` begins the model's name, which is today's or in the file; `runs` runs were equal.
    Raises ValueError for another model.
    """
    now = code_version()
    names = {name for name in (now, *same_results().values()) if name.startswith(model)}
    if len(names) != 1:
        raise ValueError(f"no model {model} in {SAME_RESULTS.name}")

    with SAME_RESULTS.open("a", encoding="utf-8", newline="") as lines:
        csv.writer(lines, lineterminator="\n").writerow((now, *names, runs))


def code(text: str) -> str:
    """Return a module's text without comments, docstrings and blank lines."""
    # By places in the text, as the dump of `ast` differs between versions of Python.
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]

    for node in ast.walk(ast.parse(text)):
        for line in _docstrings(node):
            lines[line - 1] = ""

    return "\n".join(line.rstrip() for line in lines if line.strip())


def _docstrings(node: ast.AST) -> Iterator[int]:
    """Yield the lines of docstrings, and of sentences below attributes."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return

    for statement in node.body:
        match statement:
            case ast.Expr(value=ast.Constant(value=str())):
                yield from range(statement.lineno, (statement.end_lineno or 0) + 1)
