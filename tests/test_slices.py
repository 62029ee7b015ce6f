"""The slices of `make test-slow` together are all tests, and each test is in one of them."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from tests.conftest import pytest_collection_modifyitems

HERE = Path(__file__).parent
PARTS = 3
NAMES = [f"tests/test_{file}.py::test_{number}" for file in "abc" for number in range(8)]


class Named(NamedTuple):
    """A test."""

    nodeid: str


def sliced(names: list[str], slice_text: str) -> list[str]:
    """Return which of some tests are kept; the others are told to pytest."""
    items: list[Any] = [Named(name) for name in names]
    left_out: list[Any] = []
    config: Any = SimpleNamespace(
        getoption=lambda _: slice_text,
        hook=SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items)),
    )
    pytest_collection_modifyitems(config, items)
    assert sorted(item.nodeid for item in items + left_out) == sorted(names)
    return [item.nodeid for item in items]


def test_slices_are_all_tests_once() -> None:
    slices = [sliced(NAMES, f"{number}/{PARTS}") for number in range(PARTS)]

    assert all(slices)
    assert sorted(name for part in slices for name in part) == NAMES
    assert sliced(NAMES, "") == NAMES


def test_a_number_of_commits_is_a_slice_too() -> None:
    assert sliced(NAMES, f"{100 * PARTS + 1}/{PARTS}") == sliced(NAMES, f"1/{PARTS}")


def test_pytest_has_the_option() -> None:
    file = "tests/fattree/test_draws.py"
    command = (sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider")
    ended = subprocess.run(
        [*command, "--slice", f"1/{PARTS}", file],
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    collected = [line for line in ended.stdout.splitlines() if "::" in line]
    text = (HERE.parent / file).read_text(encoding="utf-8")
    names = [
        f"{file}::{line[4:].partition('(')[0]}" for line in text.splitlines() if "def test_" in line
    ]
    assert collected == sliced(names, f"1/{PARTS}") != []
