"""A kept report, compared with runs of today: equal to the digit, or the value that differs."""

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from pages import fresh
from pages.fresh import again, drawn, kept_runs, stale
from sim.sweeps import model_version
from tests.reproduction.report.conftest import FIGURES, Report

MOST_HOPS = 10_000_000


@pytest.fixture(scope="module")
def made(tiny: Report) -> Path:
    """Return the data of a small report, made now."""
    return tiny.folder / "data"


def test_what_was_made_now_is_fresh_to_the_digit(made: Path) -> None:
    assert stale(made) is None
    runs = drawn(kept_runs(made), count=2, seed=3, most_hops=MOST_HOPS)
    # Turn by turn: no figure is left out because another figure has more runs.
    assert {run.figure.name for run in runs} == set(FIGURES)
    assert [line for run in runs for line in again(run)] == []


@pytest.mark.parametrize("column", ["cct_ps", "together"])
def test_a_value_that_is_another_one_is_told(made: Path, tmp_path: Path, column: str) -> None:
    frame = pl.read_parquet(made / "invariant.parquet")
    (tmp_path / "made_with.json").write_text((made / "made_with.json").read_text())
    changed = frame.with_columns(
        pl.col(column) + 1 if column == "cct_ps" else pl.col(column).list.eval(pl.element() + 1)
    )
    changed.write_parquet(tmp_path / "invariant.parquet")
    (run,) = drawn(kept_runs(tmp_path), count=1, seed=1, most_hops=MOST_HOPS)
    told = list(again(run))
    assert len(told) == 1
    assert f": {column} is" in told[0]


def test_data_of_another_model_are_stale(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = json.loads((made / "made_with.json").read_text())
    values["environment"]["model"] = "0123456789abcdef"
    (tmp_path / "made_with.json").write_text(json.dumps(values))
    assert "made with model 0123456789abcdef" in (stale(tmp_path) or "")
    monkeypatch.setattr(fresh, "model_version", lambda: "f" * 64)
    assert stale(made) is not None


def test_seeds_draw_other_runs(made: Path) -> None:
    runs = kept_runs(made)
    chosen = {tuple(map(str, drawn(runs, 3, seed, MOST_HOPS))) for seed in range(20)}
    assert len(chosen) > 5


@pytest.mark.parametrize("change", [0, 1])
def test_a_code_keeps_the_model_where_all_drawn_runs_are_equal(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: int
) -> None:
    (tmp_path / "made_with.json").write_text((made / "made_with.json").read_text())
    frame = pl.read_parquet(made / "invariant.parquet").with_columns(pl.col("cct_ps") + change)
    frame.write_parquet(tmp_path / "invariant.parquet")
    same = tmp_path / "same.csv"
    before = model_version.SAME_RESULTS.read_text()
    same.write_text(before)
    monkeypatch.setattr(model_version, "SAME_RESULTS", same)
    model_version.same_results.cache_clear()
    done = CliRunner().invoke(fresh.main, [str(tmp_path), "--runs", "1", "--keep"])
    model_version.same_results.cache_clear()

    assert done.exit_code == change
    added = same.read_text().removeprefix(before).splitlines()
    assert [line.split(",")[2] for line in added] == ([] if change else ["1"])
