"""Constructs without machine code are named in the reason, as docs/p4-support.md lists them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ofan_p4.compiler import compile_file
from ofan_p4.softswitch.codegen import printed_statements, printing
from ofan_p4.softswitch.codegen.assembly import assemble
from ofan_p4.softswitch.codegen.kinds import EXPRESSIONS, STATEMENTS
from ofan_p4.softswitch.codegen.loading import load
from ofan_p4.softswitch.native.engine import NativeProgram, native_program
from ofan_p4.softswitch.native.translate import translate, unsupported
from ofan_p4.softswitch.native.values import UnsupportedError

CASES = Path(__file__).parents[1] / "compiler" / "cases"
MEANINGS = dict(unsupported())


def test_python_has_a_rule_for_every_node() -> None:
    assert set(printing.RULES) == set(EXPRESSIONS)
    assert set(printed_statements.RULES) == set(STATEMENTS)


def limited(p: Any) -> Any:
    return p.call("assign", "h.a", p.op("usat_cast", "h.a", "h.b"))


def drawn(p: Any) -> Any:
    return p.call("modify_field_rng_uniform", "h.a", 0, 1 << 63)


def logged(p: Any) -> Any:
    values = {"type": "parameters_vector", "value": [p.field("h.wide")]}
    return p.call("log_msg", {"type": "string", "value": "{}"}, values)


def product(p: Any) -> Any:
    wide = p.op("*", "h.wide", "h.wide")
    for _ in range(6):
        wide = p.op("*", wide, wide)

    return p.call("assign", "h.wide", p.op(">>", wide, 5_000))


def hashed(p: Any) -> Any:
    inputs = [p.field("h.a"), {"type": "payload"}]
    p.root["calculations"] = [{"name": "k", "id": 0, "algo": "crc32", "input": inputs}]
    calculation = {"type": "calculation", "value": "k"}

    return p.call("modify_field_with_hash_based_offset", "h.a", 0, calculation, 1 << 16)


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        (limited, "CutByValue"),
        (hashed, "JoinedBytes"),
        (drawn, "RANDOM"),
        (logged, "LOGS"),
        (product, "NUMBERS"),
    ],
)
def test_statements(program: Any, statement: Callable[[Any], Any], name: str) -> None:
    program.header("h", a=8, b=8, wide=64)
    program.state("start", [program.extract("h")])
    program.run("work", [statement(program)])

    assert native_program(program.source()) == f"no native code for {name}: {MEANINGS[name]}"


def test_checksums_over_varbits_have_machine_code() -> None:
    compiled = compile_file(CASES / "checksum_of_options.p4")

    assert isinstance(native_program(json.dumps(compiled.json).encode()), NativeProgram)


def test_varbits_are_not_compared() -> None:
    compiled = compile_file(CASES / "varbit_headers_compared.p4")
    reason = native_program(json.dumps(compiled.json).encode())

    assert reason == f"no native code for CompareBytes: {MEANINGS['CompareBytes']}"


def test_nothing_is_traced(program: Any) -> None:
    program.header("h", a=8)
    program.state("start", [program.extract("h")])
    loaded = load(program.source())

    with pytest.raises(UnsupportedError, match=r"^Trace: "):
        translate(loaded, assemble(loaded, is_traced=True))
