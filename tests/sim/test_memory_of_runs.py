"""A run that this machine has no memory for."""

import pytest

from fattree.experiment.model import Scenario
from fattree.records.record import Record
from sim.errors import FailedRunsError
from sim.sweeps.sweeping import sweep


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Unable to allocate 5. MiB for an array with shape (9,)",
            "out of memory: Unable to .* MiB",
        ),
        ("", "out of memory"),
    ],
)
def test_a_run_without_memory_is_a_line_without_types(text: str, expected: str) -> None:
    def run(_scenario: Scenario) -> Record:
        raise MemoryError(text)

    with pytest.raises(FailedRunsError, match=f"^{expected}$"):
        sweep([Scenario()], run=run)
