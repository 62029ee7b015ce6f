"""Random programs: our compiler and both engines behave as the judge reads the specification.

`comparing.compare(seed, ...)` makes a failure again; nothing but the seed decides it. More:
`python -m tests.language.many --count 20000`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.language.comparing import compare
from tests.language.drawing_pieces import WIDE
from tests.language.faults import CALLS, FAULTS, Fault, applied
from tests.language.many import PACKETS, quick_machine_code

FAST = range(10)
SLOW = range(20_000, 20_800)
MOST_PROGRAMS = 1000
MOST_CALLS = 500


@pytest.fixture
def quickly_made() -> Iterator[None]:
    with quick_machine_code():
        yield


@pytest.mark.usefixtures("quickly_made")
def test_random_programs_do_what_the_specification_says() -> None:
    verdicts = [compare(seed, PACKETS, ("python", "native")) for seed in FAST]

    assert [verdict for verdict in verdicts if verdict.difference] == []
    # Else nothing has been compared.
    assert sum(verdict.judged for verdict in verdicts) > 0.8 * PACKETS * len(FAST)
    assert sum(bool(verdict.refused or verdict.no_code) for verdict in verdicts) < 3


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("quickly_made")
@pytest.mark.parametrize("start", range(SLOW.start, SLOW.stop, 200))
def test_more_random_programs_do(start: int) -> None:
    for seed in range(start, start + 200):
        verdict = compare(seed, PACKETS, ("python", "native"))
        assert verdict.difference == "", f"seed {seed}: {verdict.difference}"


@pytest.mark.usefixtures("quickly_made")
def test_random_programs_with_wide_numbers_do() -> None:
    for seed in (35, 52):
        verdict = compare(seed, PACKETS, ("python", "native"), WIDE)
        assert verdict.difference == "", f"seed {seed}: {verdict.difference}"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("quickly_made")
def test_more_random_programs_with_wide_numbers_do() -> None:
    for seed in range(100, 300):
        verdict = compare(seed, PACKETS, ("python", "native"), WIDE)
        assert verdict.difference == "", f"seed {seed}: {verdict.difference}"


@pytest.mark.parametrize("fault", (*FAULTS, *CALLS), ids=lambda fault: fault.name)
def test_the_line_of_a_fault_is_there_once(fault: Fault) -> None:
    assert fault.times_there() == 1


@pytest.mark.parametrize("fault", FAULTS[1:3], ids=lambda fault: fault.name)
def test_faults_of_the_compiler_are_noticed(fault: Fault) -> None:
    assert found_within(fault, 30)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("fault", (FAULTS[0], *FAULTS[3:]), ids=lambda fault: fault.name)
def test_rarer_faults_of_the_compiler_are_noticed(fault: Fault) -> None:
    assert found_within(fault, MOST_PROGRAMS)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("fault", CALLS, ids=lambda fault: fault.name)
def test_faults_of_calls_are_noticed(fault: Fault) -> None:
    assert found_within(fault, MOST_CALLS)


def found_within(fault: Fault, programs: int) -> bool:
    with applied(fault):
        return any(compare(seed, PACKETS, ("python",)).difference for seed in range(programs))


CLONES = """
import sys
from pathlib import Path
from ofan_p4.softswitch.native import machine
from ofan_p4.stf import run_case

machine.MOST_LINES = 0
case = Path(sys.argv[1])
verdict = run_case(case.with_suffix(".p4"), case)
sys.exit(verdict.detail or 0)
"""


def test_machine_code_of_large_programs_reads_no_memory_that_is_not_there(tmp_path: Path) -> None:
    # LLVM takes its simple way for large programs, which leaves a read where it stands: the one
    # behind "is this packet a clone?" was of address 0, and ended the process.
    case = Path(__file__).parents[1] / "emulation/compiler/cases/clone_ingress.stf"
    run = subprocess.run(
        [sys.executable, "-c", CLONES, str(case)],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stderr
