"""Every test file without a mutant: its seconds, its failures, the functions that it enters.

Kept under build/mutants for as long as neither the test file nor a module that it enters changes.
"""

import json
import math
import shutil
import sys
import threading
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.mutants.checkout import FAILED, NOTHING, PASSED, ROOT, Checkout, digest, python_path

KEPT = ROOT / "build" / "mutants" / "measured"
WATCH = "tests/mutants/watch"
# A test file that takes longer than that without a mutant is shown none.
LONGEST_S, LONGEST_WALL_S = 90, 900


@dataclass(frozen=True)
class Measured:
    """A test file's processor seconds, the tests that fail, {module: first lines of functions}."""

    seconds: float
    failing: list[str]
    entered: dict[str, list[int]]
    content: str


class Measurements:
    """Measurements of test files, each made when it is first asked for."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bool], Measured] = {}
        self._one_at_a_time = threading.Lock()

    def of(self, checkout: Checkout, test: str, *, interpreted: bool) -> Measured:
        """Return a test file's measurement; `interpreted`, where kernels are plain Python."""
        with self._one_at_a_time:
            if (test, interpreted) not in self._known:
                path = KEPT / ("interpreted" if interpreted else "compiled") / f"{test}.json"
                measured = kept(path, test) or measure(checkout, test, interpreted=interpreted)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(asdict(measured)))
                self._known[test, interpreted] = measured
            return self._known[test, interpreted]


def file_of(test: str) -> str:
    """Return the file of a test."""
    return test.partition("::")[0]


def kept(path: Path, test: str) -> Measured | None:
    """Return an earlier measurement, None where there is none or it is out of date."""
    if not path.exists():
        return None
    measured = Measured(**json.loads(path.read_text()))
    return (
        measured if measured.content == digest(sorted({file_of(test), *measured.entered})) else None
    )


def measure(checkout: Checkout, test: str, *, interpreted: bool) -> Measured:
    """Run a test file in an unchanged checkout."""
    # Programs that were compiled for another test file would hide who compiles them.
    shutil.rmtree(checkout.caches / "other", ignore_errors=True)
    notes = checkout.caches / "entered"
    notes.write_text("")
    ended = checkout.pytest(
        [test],
        cpu_s=LONGEST_S,
        wall_s=LONGEST_WALL_S,
        extra={
            "PYTHONPATH": python_path(checkout.folder, checkout.folder / WATCH),
            "OFAN_ENTERED": str(notes),
        }
        | kernels(interpreted),
    )
    entered = read(notes)
    runs = ended.status in (PASSED, FAILED, NOTHING)
    sys.stdout.write(f"without a mutant: {test}: {ended.seconds:.1f} s {ended.failed}\n")
    return Measured(
        seconds=round(ended.seconds, 1) if runs else math.inf,
        failing=ended.failed,
        entered=entered,
        content=digest(sorted({file_of(test), *entered})),
    )


def kernels(interpreted: bool) -> dict[str, str]:
    """Return the environment in which kernels are plain Python, or compiled."""
    return {"NUMBA_DISABLE_JIT": "1" if interpreted else "0"}


def read(notes: Path) -> dict[str, list[int]]:
    """Return {module: first lines} of the functions that were entered."""
    entered: dict[str, set[int]] = defaultdict(set)
    for line in notes.read_text().splitlines():
        module, number = line.rsplit(" ", 1)
        entered[module].add(int(number))
    return {module: sorted(lines) for module, lines in sorted(entered.items())}
