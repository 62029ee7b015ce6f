"""The slices of `make test-slow` together are all tests, and each test is in one of them."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PARTS = 3


def names(*options: str) -> list[str]:
    """Return the tests of this folder's smallest file that would run."""
    command = (sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider")
    ended = subprocess.run(
        [*command, *options, "fattree/test_iwrr.py"],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    return sorted(line for line in ended.stdout.splitlines() if "::" in line)


def test_slices_are_all_tests_once() -> None:
    every = names()
    slices = [names("--slice", f"{number}/{PARTS}") for number in range(PARTS)]

    assert len(every) > PARTS
    assert all(slices)
    assert sorted(name for part in slices for name in part) == every


def test_a_number_of_commits_is_a_slice_too() -> None:
    assert names("--slice", f"{100 * PARTS + 1}/{PARTS}") == names("--slice", f"1/{PARTS}")
