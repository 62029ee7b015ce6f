"""CI sees the same examples every time, people see new ones."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DRAWS = """
from hypothesis import given, strategies as st

@given(st.integers(0, 2**60))
def test_draw(number):
    print("drawn", __name__, number)
"""


@pytest.mark.parametrize(("ci", "draws"), [("true", 1), ("", 2)], ids=["in CI", "at home"])
def test_examples_repeat_only_in_ci(ci: str, draws: int, tmp_path: Path) -> None:
    # Which examples are fixed is said by a test's own text: two files are as two days.
    for name in ("one", "two"):
        (tmp_path / f"test_{name}.py").write_text(DRAWS)
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
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        check=True,
    )
    drawn = re.findall(r"drawn (\w+) (\d+)", done.stdout)
    numbers = {
        tuple(number for name, number in drawn if name == file) for file in ("test_one", "test_two")
    }
    assert len(numbers) == draws and all(len(drawn_numbers) > 10 for drawn_numbers in numbers)
