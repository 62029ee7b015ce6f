"""The fate of a mutant: the test that notices it, and how long that result is valid."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sim.kernels.jit import KERNEL_MODULES
from tests.mutants.checkout import NOTHING, PASSED, ROOT, Checkout, digest
from tests.mutants.faults import Fault
from tests.mutants.measured import Measured, Measurements, file_of, kernels
from tests.mutants.relevance import Stage, stages

# A mutant that the tests of so many seconds, near ones first, have not noticed has survived.
PATIENCE_S = 120
# Of the first process that shows tests a mutant, in seconds; each further one may take more, so
# that few are started for a mutant that survives, and little is run for one that is noticed.
FIRST_S, GROWTH = 5, 3
# Seconds that a process may take beyond a multiple of its tests' time without a mutant: of the
# processor, so that a busy machine makes no mutant look noticed, and of the clock, as a mutant may
# wait forever.
SLOWER, MARGIN_S, MARGIN_WALL_S = 4, 30, 60
# To compile kernels that no cache holds.
COMPILING_S = 120

Fate = Literal["noticed", "survived", "equivalent"]


@dataclass(frozen=True)
class Verdict:
    """The fate of a mutant.

    `by` names the test that failed; `content` is the hash of all that the verdict depends on.
    """

    module: str
    line: int
    nth: int
    text: str
    change: str
    fate: Fate
    by: str = ""
    content: str = ""

    @property
    def name(self) -> tuple[str, str, str, int]:
        return self.module, self.text, self.change, self.nth


def verdict(fault: Fault, fate: Fate, by: str = "") -> Verdict:
    mutant = fault.mutant
    return Verdict(
        module=fault.module,
        line=mutant.line,
        nth=mutant.nth,
        text=mutant.text,
        change=mutant.change,
        fate=fate,
        by=by,
        content=content(fault, by),
    )


def content(fault: Fault, by: str) -> str:
    """Return the hash of a mutated module and of the tests that decide its mutant's fate."""
    shown = [test for stage in stages(ROOT, fault.module) for test in stage.files]
    return digest([fault.module, *map(file_of, [by] if by else shown)])


def judge(checkout: Checkout, fault: Fault, measurements: Measurements) -> Verdict:
    """Run a mutant's tests until one fails."""
    patience = float(PATIENCE_S)
    for stage in stages(checkout.folder, fault.module):
        measured = {
            test: measurements.of(checkout, test, interpreted=stage.interpreted)
            for test in stage.files
        }
        for tests in batches(chosen(fault, stage, measured, patience), measured):
            patience -= sum(measured[test].seconds for test in tests)
            with checkout.changed(fault.module, fault.mutant.source):
                by = noticing(
                    checkout,
                    tests,
                    measured,
                    interpreted=stage.interpreted,
                    compiling_s=0 if is_seen(fault, stage) else COMPILING_S,
                )
            if by:
                return verdict(fault, "noticed", by)
    return verdict(fault, "survived")


def chosen(
    fault: Fault, stage: Stage, measured: dict[str, Measured], patience: float
) -> Iterator[str]:
    """Yield the near tests of a stage and those that enter the mutated function, quick ones first.

    Of compiled kernels whoever imports their module may call them.
    """
    function = fault.mutant.function if is_seen(fault, stage) else 1
    for test in sorted(stage.files, key=lambda test: measured[test].seconds):
        enters = function in measured[test].entered.get(fault.module, ())
        if enters or stage.is_near:
            patience -= measured[test].seconds
            if patience < 0:
                return
            yield test


def is_seen(fault: Fault, stage: Stage) -> bool:
    """Tell whether calls of the mutated function are seen, as those of compiled kernels are not."""
    return stage.interpreted or fault.module not in KERNEL_MODULES


def batches(tests: Iterator[str], measured: dict[str, Measured]) -> Iterator[list[str]]:
    """Yield the tests of one process after the other."""
    batch: list[str] = []
    bound, taken = FIRST_S, 0.0
    for test in tests:
        batch.append(test)
        taken += measured[test].seconds
        if taken >= bound:
            yield batch
            batch, bound, taken = [], bound * GROWTH, 0.0
    if batch:
        yield batch


def noticing(
    checkout: Checkout,
    tests: list[str],
    measured: dict[str, Measured],
    *,
    interpreted: bool,
    compiling_s: float = 0,
) -> str:
    """Return the first of these tests that fails, empty where none does."""
    # Tests that fail anyway can notice nothing.
    excused = [f"--deselect={name}" for test in tests for name in measured[test].failing]
    usual = SLOWER * sum(measured[test].seconds for test in tests) + compiling_s
    ended = checkout.pytest(
        ["-x", *excused, *tests],
        cpu_s=usual + MARGIN_S,
        wall_s=4 * usual + MARGIN_WALL_S,
        extra={"PYTHONDONTWRITEBYTECODE": "1"} | kernels(interpreted),
    )
    if ended.status in (PASSED, NOTHING):
        return ""
    return next(iter(ended.failed), f"{tests[0]} (ended with {ended.status})")
