"""The key of a run: the changes that alter it, and those that do not."""

import math
import shutil
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

import ofan_p4
from fattree.experiment.model import Collective, Failures, Scenario
from sim.sweeps import model_version as model
from sim.sweeps import store as module
from sim.sweeps.store import run_key
from tests.sim.imports import import_closure

NEVER = Failures(convergence_rtt=math.inf)


def test_the_key_ignores_the_name_only() -> None:
    keys = [
        run_key(s)
        for s in (Scenario(), Scenario(seed=2), Scenario(policy="jsq"), Scenario(failures=NEVER))
    ]

    assert len(set(keys)) == 4
    assert run_key(Scenario(name="other")) == keys[0]


def test_the_key_depends_on_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    before = run_key(Scenario())
    monkeypatch.setattr(module, "model_version", lambda: "another")

    assert run_key(Scenario()) != before


MODULE = '''"""Says what."""

LIMIT = "# 5"  # a reason
"""Of what."""


def f(x: int) -> int:
    """Return it.

    Longer.
    """
    # Why.
    return x + 1


class Table:
    key: int = 7
    """How many."""
'''


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ("Says what", "Says more", True),
        ("Of what", "Of whom", True),
        ("How many", "How much", True),
        ("key: int = 7", "key: int = 8", False),
        ("    # Why.\n", "", True),
        ("# a reason", "# another", True),
        ("    Longer.\n", "", True),
        ("x + 1", "x + 2", False),
        ('"# 5"', '"# 6"', False),
    ],
)
def test_the_model_is_its_code(old: str, new: str, is_same: bool) -> None:
    assert old in MODULE
    assert (model.code(MODULE.replace(old, new)) == model.code(MODULE)) is is_same
    assert "x + 1" in model.code(MODULE)


@pytest.fixture
def same_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file of our own for codes with equal results, with a model of before."""
    path = tmp_path / "same.csv"
    path.write_text(f"code,model,runs\n{'a' * 64},{'a' * 64},0\n")
    monkeypatch.setattr(model, "SAME_RESULTS", path)
    _forget()
    yield path
    _forget()


def _forget() -> None:
    model.same_results.cache_clear()
    model.model_version.cache_clear()


def test_a_code_that_nobody_compared_is_a_model_of_its_own(same_results: Path) -> None:
    assert model.model_version() == model.code_version()


def test_a_code_with_equal_results_keeps_the_name(same_results: Path) -> None:
    model.keep_model("a" * 16, runs=3)
    _forget()

    assert model.model_version() == "a" * 64
    assert same_results.read_text().splitlines()[-1] == f"{model.code_version()},{'a' * 64},3"


def test_the_code_that_made_the_reports_is_named_after_itself(same_results: Path) -> None:
    model.keep_model(model.code_version()[:16], runs=3)
    _forget()

    assert model.model_version() == model.code_version()


def test_no_code_keeps_the_name_of_a_model_that_is_not_known(same_results: Path) -> None:
    before = same_results.read_text()
    with pytest.raises(ValueError, match="no model bbbb"):
        model.keep_model("bbbb", runs=3)

    assert same_results.read_text() == before


def test_the_model_is_all_that_a_run_imports() -> None:
    kept = {str(path.relative_to(model.ROOT)) for path in model.model_files()}
    # How a result is kept, and the message where there is none.
    outside_model = {"fattree/records/naming.py", "fattree/records/record.py", "sim/errors.py"}
    outside_model.add("fattree/texts/storms.py")
    # A GPU runs the same functions, and its results are the same.
    outside_model |= {"sim/gpu/engine.py", "sim/gpu/kernels.py"}

    assert import_closure("sim/runs/engine.py") - kept == outside_model


def test_the_key_depends_on_the_content_of_a_traffic_file(tmp_path: Path) -> None:
    path = tmp_path / "a.cm"
    scenario = Scenario(collective=Collective(matrix="file", file=str(path)))
    keys = {run_key(scenario)}
    for text in ("Nodes 16", "Nodes 128"):
        path.write_text(text)
        keys.add(run_key(scenario))

    assert len(keys) == 3


@pytest.mark.parametrize("folder", ["compiler", "softswitch/native"])
def test_whatever_runs_programs_is_in_the_keys_of_their_runs(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The P4 tools are found where they are installed, which need not be beside the simulator."""
    copy = tmp_path / "ofan_p4"
    shutil.copytree(Path(ofan_p4.__file__).parent, copy)
    spec = ModuleSpec("ofan_p4", None, origin=str(copy / "__init__.py"))
    version = module.p4_version.__wrapped__
    before = version()
    monkeypatch.setattr(module, "find_spec", lambda _name: spec)

    assert version() == before

    with (copy / folder / "__init__.py").open("a") as file:
        file.write("CHANGED = True\n")

    assert version() != before
