"""Names of files that come with Ofan: found from any folder, after the user's own files."""

import re
from pathlib import Path

import pytest

from fattree.errors import ExperimentError
from fattree.texts.experiment_file import load_experiment
from fattree.texts.shipped import EXPERIMENTS, found, names, shipped, title


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("demo", "demo.toml"),
        ("demo.toml", "demo.toml"),
        ("experiments/demo.toml", "demo.toml"),
        ("paper/ratio", "paper/ratio.toml"),
        ("experiments/paper/ratio.toml", "paper/ratio.toml"),
        ("two_choices.p4", "two_choices.p4"),
    ],
)
def test_a_name_stands_for_a_file_of_ours(
    name: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert found(Path(name)) == EXPERIMENTS / file


def test_a_file_of_the_users_comes_first_and_a_folder_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ring").write_text("")
    Path("demo").mkdir()
    assert found(Path("ring")) == Path("ring")
    assert found(Path("demo")) == EXPERIMENTS / "demo.toml"


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../demo", "/demo", "p4src/../demo", "demos", "paper"]
)
def test_other_names_stand_for_nothing(name: str) -> None:
    assert shipped(name) is None


def test_what_is_nowhere_is_told_with_the_nearest_name() -> None:
    with pytest.raises(ExperimentError, match=r"^'dem': No such file, .*did you mean demo"):
        found(Path("dem"))
    with pytest.raises(ExperimentError, match=r"^'my/dem\.toml': No such file$"):
        found(Path("my/dem.toml"))


def test_every_name_is_found_and_says_what_it_is() -> None:
    assert len(names()) > 100 and names()[0] == "all_reduce"
    assert all(title(name) for name in names())
    # A sentence, be it of several lines, and not the command below it.
    assert title("all_reduce").endswith("to compare (docs/workloads.md).")
    assert title("step_405b").endswith("512 sequences of 4,096 tokens.")
    assert title("leaf_spine").endswith("aggs are the spines.")
    assert "llama" in title("llama_405b.json")


def test_a_matrix_lies_beside_its_experiment(tmp_path: Path) -> None:
    assert load_experiment(EXPERIMENTS / "connection_matrix.toml").collective.file


@pytest.mark.parametrize(
    ("typed", "meant"), [("fial.toml", "fail.toml"), ("fail.tml", "fail.toml"), ("demoo", "demo")]
)
def test_a_mistyped_name_may_mean_a_file_here_or_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, meant: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fail.toml").write_text("")
    with pytest.raises(ExperimentError, match=rf"did you mean {re.escape(meant)}\?"):
        found(Path(typed))
