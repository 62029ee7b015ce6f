"""A command that is killed leaves nothing, and remains are noticed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.drills.kills import SUBJECTS, Subject, drill, killed


@pytest.mark.slow
@pytest.mark.parametrize("name", ["serve", "sweep"])
def test_a_command_killed_three_times_leaves_nothing(name: str) -> None:
    seen = drill(name, moments=3, seed=int(os.environ.get("OFAN_SEED", "5")))
    assert seen.complaints == []
    assert seen.moments == 3


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_process_that_stays_is_a_complaint(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The shell needs no time to start, however busy the machine is.
    command = ("sh", "-c", "setsid sleep 9 & sleep 15")
    monkeypatch.setattr("tests.drills.kills.OFAN", command)
    monkeypatch.setattr("tests.drills.kills.END_SECONDS", 0.5)
    subject = Subject(lambda _folder: ())
    assert any("sleep 9" in line for line in killed(subject, number, 1.0, tmp_path).complaints)


def test_every_long_command_is_killed() -> None:
    assert set(SUBJECTS) == {"mininet", "serve", "report", "sweep"}
    said = subprocess.run(
        [sys.executable, "-m", "tests.drills.kills", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--moments" in said.stdout
