"""The benchmark of the control plane: its counts are right, and it leaves nothing behind."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "control_plane.py"


def output(folder: Path, *options: str) -> Any:
    command = [sys.executable, str(SCRIPT), *options]
    environment = {"TMPDIR": str(folder), "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    return json.loads(
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    )


def test_an_edge_holds_what_the_paper_says(tmp_path: Path) -> None:
    """Section 6 and appendix F: (k^2/2 - 1) and (k - 1) pointers a class, k schedules, k/2 times
    fewer rows by sharing.
    """
    row = output(tmp_path, "--plan", "8")
    assert (row["edge_pointers"], row["agg_pointers"], row["edge_schedules"]) == (31, 7, 8)
    assert (row["edge_rows"], row["edge_rows_unshared"]) == (8 * 4, 31 * 4)
    assert row["entries"] == 32 * (31 + 4 + 32 + 1) + 32 * (7 + 4 + 32 + 1) + 16 * (8 + 1)
    assert row["core_longest_schedule"] == 3 + 4 + 4 + 4


@pytest.mark.slow
def test_switches_are_installed_and_nothing_is_left(tmp_path: Path) -> None:
    report = output(tmp_path, "--quick", "--json")
    assert [row["first_updates"] for row in report["installations"]] == [276, 276]
    assert report["packets"][-1]["lost"] == 0
    assert not list(tmp_path.glob("ofan-*"))
