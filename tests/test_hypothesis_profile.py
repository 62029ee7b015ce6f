"""CI sees the same examples every time, people see new ones."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DRAWS = """
from hypothesis import given, strategies as st

@given(st.integers(0, 2**60))
def test_draw(number):
    print("drawn", number)
"""


@pytest.mark.parametrize(("ci", "draws"), [("true", 1), ("", 2)], ids=["in CI", "at home"])
def test_examples_repeat_only_in_ci(ci: str, draws: int, tmp_path: Path) -> None:
    (tmp_path / "test_drawn.py").write_text(DRAWS)
    conftest = Path(__file__).with_name("conftest.py")
    (tmp_path / "conftest.py").write_text(conftest.read_text())
    command = (
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        ".",
        "-c",
        os.devnull,
        ".",
    )
    runs = [
        subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "CI": ci},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    drawn = {tuple(line for line in run.splitlines() if "drawn" in line) for run in runs}
    assert len(drawn) == draws
