"""Every pair `cases/NAME.p4` and `cases/NAME.stf` runs through our compiler and the softswitch.

STF is p4c's format.

The first line of every program names the feature that it tests, `// AREA: feature`;
docs/p4-support.md is made of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ofan_p4.stf import run_case

CASES = sorted((Path(__file__).parent / "cases").glob("*.stf"), key=lambda path: path.stem)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_case_sends_exactly_the_expected_packets(case: Path) -> None:
    verdict = run_case(case.with_suffix(".p4"), case)
    assert verdict.status == "passed", verdict.detail


def test_every_program_has_its_packets() -> None:
    folder = Path(__file__).parent / "cases"
    assert {path.stem for path in folder.glob("*.p4")} == {path.stem for path in CASES}
