"""`ofan results compare`: two folders side by side; other experiments are refused by name."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import ofan

DEMO = Path(__file__).parents[3] / "experiments" / "demo.toml"


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(ofan.cli, [str(each) for each in arguments])


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


def test_what_is_no_results_folder_is_one_line(tmp_path: Path, folders: list[Path]) -> None:
    done = invoke("results", "compare", tmp_path, folders[0])
    assert done.exit_code != 0
    assert "is no results folder" in done.output
