"""The choice of tests for a change, and the sums of their seconds."""

from pathlib import Path

import pytest

from tests.near import ROOT, near
from tests.times import folders, lines, seconds

SUITE = """<testsuites><testsuite>
<testcase classname="tests.sim.test_nic" name="test_a" time="1.5"/>
<testcase classname="tests.sim.test_nic.TestClass" name="test_b" time="0.5"/>
<testcase classname="tests.sim.test_store" name="test_c" time="1.0"/>
<testcase classname="tests.fattree.test_draws" name="test_d" time="1.0"/>
</testsuite></testsuites>"""


@pytest.mark.parametrize(
    ("changed", "first"),
    [
        ("controller/plan.py", "tests/controller/test_plan.py"),
        ("sim/sweeps/store.py", "tests/sim/test_store.py"),
        ("emulation/completion.py", "tests/emulation/test_completion.py"),
        ("tests/fattree/test_draws.py", "tests/fattree/test_draws.py"),
        ("tests/near.py", "tests/test_near.py"),
    ],
)
def test_the_tests_of_a_module_are_near(changed: str, first: str) -> None:
    chosen = near([changed])
    assert first in chosen and all((ROOT / test).exists() for test in chosen)
    assert len(chosen) == len(set(chosen))


def test_a_room_has_its_neighbours_and_not_all() -> None:
    chosen = near(["controller/plan.py"])
    assert "tests/emulation/virtual/test_parity.py" in chosen
    assert "tests/sim/test_store.py" not in chosen


@pytest.mark.parametrize("changed", ["Makefile", "p4src/ofan.p4", "requirements/all.lock"])
def test_all_tests_run_where_it_cannot_be_known(changed: str) -> None:
    assert near([changed, "controller/plan.py"]) == ["tests"]


def test_words_have_the_tests_of_pages() -> None:
    assert "tests/test_docs_tutorial.py" in near(["docs/tutorial.md"])
    assert near(["changes/+x.fixed.md", "docs/x.png"]) == near(["docs/x.png"])
    assert near(["changes/+x.fixed.md"]) == []


def test_seconds_belong_to_files_and_folders(tmp_path: Path) -> None:
    file = tmp_path / "times.xml"
    file.write_text(SUITE, encoding="utf-8")
    spent = seconds(file)
    assert spent == {
        "tests.sim.test_nic": 2.0,
        "tests.sim.test_store": 1.0,
        "tests.fattree.test_draws": 1.0,
    }
    assert folders(spent) == {"tests.sim": 3.0, "tests.fattree": 1.0}
    assert next(iter(lines(spent))) == "    2.0 s 50.0%  tests.sim.test_nic"
