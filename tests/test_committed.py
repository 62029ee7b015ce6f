"""Committed results are of today's model: reports, tables and pictures name it, and are its own.

Each commit draws other runs and another row. Where this fails after a change of the model:
`make report` and `make beyond` (page and data to docs/), `make pictures`, `make tables`.
"""

import subprocess
from functools import cache
from pathlib import Path
from random import Random

import polars as pl
import pytest

from benchmarks.pictures import PICTURES, demo, kept, model_of
from benchmarks.tables import TABLES
from benchmarks.tables import kept as kept_table
from fattree.experiment.model import Scenario
from pages.fresh import COSTS, Kept, again, drawn, kept_runs, stale
from reproduction.report.figure import Measured
from reproduction.report.looks import LOOKS
from reproduction.report.stored import MadeWith
from sim.sweeps.model_version import model_version

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = [ROOT / "docs" / name / "data" for name in ("report", "beyond")]
# Of each report; and when there is time.
RUNS, MORE_RUNS = 2, 12
# Tables whose rows take a second or two.
QUICK = ("contenders", "links", "networks")


# Reading all of a report takes seconds.
runs_of = cache(kept_runs)


def number_of_commit() -> int:
    """Return how many commits there are, 0 without a history."""
    command = ["git", "rev-list", "--count", "HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return int(done.stdout or 0)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_reports_name_the_model_of_today(folder: Path) -> None:
    assert stale(folder) is None


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
@pytest.mark.parametrize("count", [RUNS, pytest.param(MORE_RUNS, marks=pytest.mark.slow)])
def test_some_of_their_runs_are_the_same_to_the_digit(folder: Path, count: int) -> None:
    runs = drawn(runs_of(folder), count, number_of_commit())
    assert [line for run in runs for line in again(run)] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_a_run_that_two_figures_keep_has_one_result(folder: Path) -> None:
    # Whoever runs one figure again has to run those again that share its runs.
    results: dict[Scenario, tuple[Kept, dict[str, object]]] = {}
    for run in runs_of(folder):
        if isinstance(run.record, Measured):
            continue

        # A run's name is no result of it, and newer counts have no value there.
        scenario = run.scenario.model_copy(update={"name": "", "label": ""})
        values = {
            name: getattr(run.record, name)
            for name in run.record.model_fields_set - COSTS - {"name", "label", "scenario"}
        }
        first, kept_before = results.setdefault(scenario, (run, values))
        for name in values.keys() & kept_before.keys():
            assert values[name] == kept_before[name], f"{name} of {run}, and of {first}"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_no_verdict_wants_more_seeds(folder: Path) -> None:
    rows = pl.read_csv(folder / "claims.csv")
    open_ = rows.filter(pl.col("verdict") == "too few seeds")["claim"].to_list()
    # But those whose runs have had all their looks: a mean that a few runs make has no interval.
    looks = MadeWith.read(folder).looks
    assert [claim for claim in open_ if looks[claim][0] < LOOKS] == []


@pytest.mark.parametrize("name", TABLES)
def test_tables_name_the_model_of_today(name: str) -> None:
    model, _ = kept_table((ROOT / TABLES[name].page).read_text(encoding="utf-8"), name)
    assert model == model_version()[:16]


def test_a_row_of_a_table_is_what_its_runs_give() -> None:
    rng = Random(number_of_commit())
    name = rng.choice(QUICK)
    table = TABLES[name]
    number, (_, row) = rng.choice(list(enumerate(table.rows.items())))
    _, lines = kept_table((ROOT / table.page).read_text(encoding="utf-8"), name)
    assert lines[2 + number] == table.text({"row": row()}).splitlines()[-1]


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_name_the_model_of_today(name: str) -> None:
    assert model_of(ROOT / name) == kept()[name]["model"] == model_version()[:16]


@pytest.mark.slow
def test_the_first_picture_shows_what_its_runs_give(tmp_path: Path) -> None:
    assert demo(tmp_path / "demo.png") == kept()["docs/demo.png"]["numbers"]
