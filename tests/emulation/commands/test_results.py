"""`ofan results compare`: two folders side by side; other experiments are refused by name."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

import ofan
from fattree.records.record import PERCENTILES

pytestmark = pytest.mark.usefixtures("unrendered")

DEMO = Path(__file__).parents[3] / "experiments" / "demo.toml"


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(ofan.cli, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs of one experiment with another seed's and load balancer's beside it, and a third."""
    base = tmp_path_factory.mktemp("results")
    small = ("--set", "collective.message_bytes=32768")
    plans = {
        "a": ("--set", "policies=ofan,jsq"),
        "b": ("--set", "policies=ofan,flow", "--seeds", 2),
        "c": ("--set", "policies=ofan", "--set", "fabric.latency_ns=600"),
    }
    for name, plan in plans.items():
        done = invoke("emulate", DEMO, *small, *plan, "--output", base / name)
        assert done.exit_code == 0, done.output

    return [base / name for name in plans]


def test_common_seeds_of_common_load_balancers_are_compared(folders: list[Path]) -> None:
    done = invoke("results", "compare", folders[0], folders[1], "--json")
    rows = json.loads(done.stdout)["rows"]
    assert {(row["policy"], row["seeds"]) for row in rows} == {("ofan", 1)}
    # The same seed of the same experiment gives the same run.
    assert {row["difference"] for row in rows} == {0}
    assert next(row["first"] for row in rows if row["metric"] == "p99 (µs)") > 0


def test_the_table_says_what_only_one_folder_has(folders: list[Path]) -> None:
    text = invoke("results", "compare", folders[0], folders[1]).stdout
    assert f"only in {folders[0]}: JSQ" in text
    assert f"only in {folders[1]}: Flow" in text
    assert text.count("equal") == 10


def test_different_experiments_are_refused_with_what_differs_or_shown(folders: list[Path]) -> None:
    refused = invoke("results", "compare", folders[0], folders[2])
    assert refused.exit_code != 0
    assert "different experiments (fabric.latency_ns: 500.0, 600.0)" in refused.output

    shown = invoke("results", "compare", folders[0], folders[2], "--force")
    assert "different: fabric.latency_ns: 500.0, 600.0" in shown.stdout
    rows = json.loads(
        invoke("results", "compare", folders[0], folders[2], "--force", "--json").stdout
    )["rows"]
    cct = next(row for row in rows if row["metric"] == "CCT (µs)")
    # Six links there and six back: 1.2 µs more at least.
    assert cct["difference"] == pytest.approx(cct["second"] - cct["first"])
    assert cct["difference"] > 1


def test_times_have_the_unit_of_other_tables(folders: list[Path], tmp_path: Path) -> None:
    """Mininet's runs take milliseconds; JSON keeps its unit, as programs read it."""
    shutil.copytree(folders[0], tmp_path / "x")
    file = tmp_path / "x" / "results.parquet"
    rows = pl.read_parquet(file)
    slow = rows.with_columns(
        cct_ps=pl.lit(4_092_310_610_000), **{name: pl.lit(10**12) for name in PERCENTILES}
    )
    slow.write_parquet(file)
    shown = invoke("results", "compare", tmp_path / "x", tmp_path / "x").stdout
    assert "CCT (ms)" in shown and "4,092.31" in shown and "p99.9 (ms)" in shown
    assert "µs" not in shown
    assert "CCT (µs)" in invoke("results", "compare", folders[0], folders[0]).stdout

    answer = invoke("results", "compare", tmp_path / "x", tmp_path / "x", "--json").stdout
    cct = next(row for row in json.loads(answer)["rows"] if row["metric"] == "CCT (µs)")
    assert cct["first"] == pytest.approx(4_092_310.61)


def test_a_folder_of_results_names_them(folders: list[Path]) -> None:
    said = CliRunner().invoke(ofan.cli, ["results", "compare", *map(str, [folders[0].parent] * 2)])
    assert said.exit_code != 0
    assert f"(results are in {folders[0].name}, " in said.output


def test_what_is_no_results_folder_is_one_line(tmp_path: Path, folders: list[Path]) -> None:
    done = invoke("results", "compare", tmp_path, folders[0])
    assert done.exit_code != 0
    assert "is no results folder" in done.output


HOSTILE: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "no finite number": lambda rows: rows.with_columns(increase=pl.lit(float("nan"))),
    # Numbers that differ, as equal ones would be refused for how well they pack.
    "more than 100,000": lambda rows: pl.concat([rows] * 60_000).with_columns(
        seed=pl.int_range(pl.len()), cct_ps=pl.int_range(pl.len()).shuffle(seed=1)
    ),
    "no valid name": lambda rows: rows.with_columns(policy=pl.lit("\x1b[2J")),
    "Input should be a valid integer": lambda rows: rows.with_columns(k=pl.lit("x")),
    "Field required": lambda rows: rows.drop("cct_ps"),
}


@pytest.mark.parametrize("said", HOSTILE)
def test_hostile_tables_are_one_line(said: str, folders: list[Path], tmp_path: Path) -> None:
    shutil.copytree(folders[0], tmp_path / "x")
    file = tmp_path / "x" / "results.parquet"
    HOSTILE[said](pl.read_parquet(file)).write_parquet(file)
    one_line(invoke("results", "compare", tmp_path / "x", folders[0]), said)


def test_names_are_no_markup(folders: list[Path], tmp_path: Path) -> None:
    shutil.copytree(folders[0], tmp_path / "x")
    file = tmp_path / "x" / "results.parquet"
    pl.read_parquet(file).with_columns(policy=pl.lit("[/a]")).write_parquet(file)
    done = invoke("results", "compare", tmp_path / "x", tmp_path / "x")
    assert done.exit_code == 0 and "[/a]" in done.output, done.output


def test_as_many_load_balancers_as_rows_take_no_square_of_time(
    folders: list[Path], tmp_path: Path
) -> None:
    shutil.copytree(folders[0], tmp_path / "x")
    file = tmp_path / "x" / "results.parquet"
    rows = pl.concat([pl.read_parquet(file)] * 1_500)
    rows.with_columns(policy="p" + pl.int_range(len(rows)).cast(pl.String)).write_parquet(file)
    done = invoke("results", "compare", tmp_path / "x", tmp_path / "x", "--json")
    assert len(json.loads(done.stdout)["rows"]) == 10 * len(rows)


@pytest.mark.parametrize("name", ["results.parquet", "experiment.toml"])
def test_what_is_no_file_is_one_line(name: str, folders: list[Path], tmp_path: Path) -> None:
    shutil.copytree(folders[0], tmp_path / "x")
    file = tmp_path / "x" / name
    for make in (os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")):
        file.unlink(missing_ok=True)
        make(file)
        one_line(invoke("results", "compare", tmp_path / "x", folders[0]), f"no file {name}")
        file.rmdir() if file.is_dir() else file.unlink()


def one_line(done: Result, said: str) -> None:
    assert done.exit_code != 0 and isinstance(done.exception, SystemExit), done.exception
    assert said in done.output and len(done.output.splitlines()) == 1, done.output
