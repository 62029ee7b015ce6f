"""docs/generated-ofan.py.txt: the switch's code for p4src/ofan.p4, with a key to its names.

`make sample` writes it, a test compares it.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import p4src
from ofan_p4.compiler import compile_file
from ofan_p4.softswitch.codegen import names
from ofan_p4.softswitch.codegen.assembly import Assembly, assemble
from ofan_p4.softswitch.codegen.loading import load
from ofan_p4.softswitch.codegen.program import Header, Program

PAGE = Path(__file__).parents[3] / "docs" / "generated-ofan.py.txt"
COMMAND = "make sample"
WIDTH = 100
HEAD = f"""\
This is what the switch runs in place of p4src/ofan.p4, compiled for 4 uplinks: two functions, made
by p4tools/ofan_p4/softswitch/codegen/ from the compiler's BMv2 JSON, and the key to their
names. It is here to be read; `{COMMAND}` writes it again after a change of the program or of the
generator."""


def sample() -> str:
    """Return the page as it must be."""
    compiled = compile_file(p4src.path("ofan"), defines={"MAX_UPLINKS": "4"})
    program = load(json.dumps(compiled.json).encode())
    assembly = assemble(program)
    lines = [*HEAD.splitlines(), "", *names.legend(), "", *key(program, assembly)]

    return "\n".join([*(f"# {line}".rstrip() for line in lines), "", assembly.source])


def key(program: Program, assembly: Assembly) -> Iterator[str]:
    """Yield the meanings of the numbers in this program's names."""
    used = names_in(assembly.source)
    yield "Headers and structs of this program, and the fields that occur below:"
    for header in program.headers:
        yield from _wrapped(f"{header.id}  {header.name}: ", _fields(header, used))

    yield ""
    yield "Its tables (T, L, D):"
    for number, table in enumerate(program.tables()):
        if names.default(number) in used:
            yield f"  {number}  {table.name}"

    yield ""
    yield f"Its actions ({names.ACTION}):"
    for action in program.actions.values():
        if f"if {names.ACTION} == {action.id}:" in assembly.source:
            parameters = ", ".join(action.parameter_names)
            yield f"  {action.id}  {action.name}({parameters})"

    yield ""
    yield "Its registers (R):"
    for array in program.registers:
        yield f"  {array.id}  {array.name}: {array.size} cells of {array.bits} bits"

    yield ""
    yield "Its constants (K):"
    for name, value in assembly.constants.items():
        if name in used:
            method = getattr(value, "__name__", "")
            yield f"  {name}  {method} of struct {value.__self__.format!r}"  # type: ignore[attr-defined]


def names_in(source: str) -> set[str]:
    """Return the names of variables and arguments in Python source."""
    nodes = list(ast.walk(ast.parse(source)))
    variables = {node.id for node in nodes if isinstance(node, ast.Name)}
    return variables | {node.arg for node in nodes if isinstance(node, ast.arg)}


def _fields(header: Header, used: set[str]) -> list[str]:
    return [f"{field.index} {field.name}" for field in header.fields if field.var.name in used]


def _wrapped(start: str, items: list[str]) -> Iterator[str]:
    """Yield items after a label, on as many lines as they need."""
    line = f"  {start}"
    for item in items:
        if len(line) + len(item) + 4 > WIDTH:
            yield line.rstrip()
            line = "     "

        line += f"{item}, "

    yield line.rstrip(", ")


if __name__ == "__main__":
    PAGE.write_text(sample(), encoding="utf-8")
