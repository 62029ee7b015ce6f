"""The language cases on BMv2 itself, where it is installed: the expected packets come out."""

from __future__ import annotations

from pathlib import Path

import pytest

from ofan_p4.compiler import compile_file
from ofan_p4.stf.compare import first_difference
from ofan_p4.stf.script import Expect, parse_script
from tests.emulation.compiler import bmv2_bench

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.skipif(bmv2_bench.missing() is not None, reason=str(bmv2_bench.missing())),
]
CASES = sorted((Path(__file__).parent / "cases").glob("*.stf"), key=lambda path: path.stem)
FIRST_THRIFT_PORT = 21_000
# Conditions that the bench fixes and BMv2 does not.
DIFFERENT = {
    "random_numbers": "BMv2 draws its own random numbers",
    "meters": "colours depend on how fast this machine sends",
}


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_case_is_the_same_on_bmv2(case: Path, tmp_path: Path) -> None:
    if case.stem in DIFFERENT:
        pytest.skip(DIFFERENT[case.stem])

    program = compile_file(case.with_suffix(".p4")).json
    commands = parse_script(case.read_text()).commands

    try:
        sent = bmv2_bench.run(tmp_path, program, commands, FIRST_THRIFT_PORT + CASES.index(case))
    except bmv2_bench.Unsupported as reason:
        pytest.skip(f"BMv2's command line cannot do this: {reason}")

    expected = [command for command in commands if isinstance(command, Expect)]

    assert first_difference(program, expected, sent) is None
