"""Measurements of tests without a mutant, the tests that a mutant is shown to, and its fate."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fattree.routes.iwrr import interleave, simplify
from tests.mutants.checkout import ROOT, Checkout, python_path
from tests.mutants.faults import Fault
from tests.mutants.judging import batches, chosen, noticing
from tests.mutants.measured import WATCH, Measured, read
from tests.mutants.mutations import Mutant
from tests.mutants.relevance import Stage

IWRR = "fattree/routes/iwrr.py"


def first_line(function: object) -> int:
    return inspect.getsourcelines(function)[1]  # type: ignore[arg-type]


def fault(old: str, new: str, function: int) -> Fault:
    source = (ROOT / IWRR).read_text()
    assert old in source
    return Fault(IWRR, Mutant(1, function, 1, old, new, source.replace(old, new)))


def test_functions_that_are_entered_are_noted_in_children_and_threads_too(tmp_path: Path) -> None:
    calls = "import threading as t, numpy as n, fattree.routes.iwrr as i; a = n.array([[2, 4]]);"
    thread = "r = t.Thread(target=i.simplify, args=(a,)); r.start(); r.join()"
    child = f"import subprocess as s, sys; s.run([sys.executable, '-c', {calls + thread!r}])"
    notes = tmp_path / "notes"
    environment = {"PYTHONPATH": python_path(ROOT, ROOT / WATCH), "OFAN_ENTERED": str(notes)}
    subprocess.run([sys.executable, "-c", child], env=os.environ | environment, check=True)

    lines = read(notes)[IWRR]
    assert lines == [1, first_line(simplify)]
    assert first_line(interleave) not in lines


def test_a_mutant_is_shown_to_near_tests_and_to_those_that_enter_its_function() -> None:
    measured = {
        "slow": Measured(9, [], {IWRR: [1, 26]}, ""),
        "quick": Measured(1, [], {IWRR: [1, 26]}, ""),
        "importing": Measured(0, [], {IWRR: [1, 16]}, ""),
        "far": Measured(0, [], {}, ""),
        "slowest": Measured(99, [], {IWRR: [26]}, ""),
    }
    stage = Stage(tuple(measured))
    mutated = fault("axis=1)", "axis=0)", 26)
    assert list(chosen(mutated, stage, measured, 100)) == ["quick", "slow"]
    assert list(chosen(mutated, Stage(tuple(measured), is_near=True), measured, 5)) == [
        "importing",
        "far",
        "quick",
    ]
    assert list(batches(iter(["slow", "quick", "importing"]), measured)) == [
        ["slow"],
        ["quick", "importing"],
    ]


@pytest.mark.slow
def test_a_fault_is_noticed_and_undone(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    test = "tests/fattree/test_iwrr.py"
    measured = {test: Measured(1, [], {}, "")}
    wrong = fault("np.maximum(divisors, 1)", "np.maximum(divisors, 2)", first_line(simplify))
    with checkout.changed(IWRR, wrong.mutant.source):
        assert noticing(checkout, [test], measured, interpreted=False).startswith(f"{test}::")
    assert noticing(checkout, [test], measured, interpreted=False) == ""
