"""`ofan experiments`: list, show, copy."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import ofan
from fattree.texts.experiment_file import load_experiment
from fattree.texts.shipped import EXPERIMENTS, names
from fattree.texts.sweep_file import load_sweep


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(ofan.cli, ["experiments", *arguments])
    return done.exit_code, done.output


def test_list_has_names_and_what_they_are() -> None:
    code, text = run("list")
    assert code == 0 and "demo_failure  " in text and "a core link fails" in text
    assert "paper/ratio" not in text
    assert run("list", "--paper", "--names")[1].splitlines()[0].startswith("paper/")


def test_show_writes_the_file() -> None:
    assert run("show", "demo") == (0, (EXPERIMENTS / "demo.toml").read_text())


def test_copies_bring_what_they_need_and_replace_nothing(empty: Path) -> None:
    code, text = run("copy", "connection_matrix", "two_choices.p4")
    assert (code, text.split()) == (
        0,
        ["connection_matrix.toml", "two_rounds.cm", "two_choices.p4"],
    )
    assert all((empty / name).is_file() for name in text.split())
    assert run("copy", "connection_matrix", "two_choices.p4") == (code, text), "a second time"

    (empty / "two_choices.p4").write_text("mine")
    code, text = run("copy", "two_choices.p4", "demo")
    assert code == 1 and "exists already" in text
    assert not (empty / "demo.toml").exists()
    assert run("copy", "two_choices.p4", "--force")[0] == 0
    assert (empty / "two_choices.p4").read_text() != "mine"


@pytest.mark.parametrize(
    "name", [shipped_name for shipped_name in names() if "." not in shipped_name]
)
def test_a_copy_of_every_experiment_loads_from_an_empty_folder(empty: Path, name: str) -> None:
    assert run("copy", name)[0] == 0
    file = empty / f"{Path(name).name}.toml"
    if "[sweep]" in file.read_text():
        assert load_sweep(file)
    else:
        # The files that it needs are read from beside it.
        experiment = load_experiment(file)
        assert all(Path(needed).is_relative_to(empty) for needed in experiment.files)


def test_a_copied_step_has_its_workload(empty: Path) -> None:
    assert run("copy", "step_405b") == (0, "step_405b.toml\nstep_405b.parquet\n")


def test_programs_are_copied_with_their_includes(empty: Path) -> None:
    assert run("copy", "p4src")[0] == 0

    ours = ["p4", "compile", "p4src/ecmp.p4", "-o", "x.json"]
    assert CliRunner().invoke(ofan.cli, ours).exit_code == 0
    assert (empty / "p4src" / "include" / "fabric.p4").is_file()


@pytest.mark.parametrize(
    ("page", "language", "name"),
    [
        ("your-own-load-balancer.md", "p4", "two_choices.p4"),
        ("your-own-load-balancer.md", "python", "fast_labels.py"),
    ],
)
def test_examples_are_those_of_the_documentation(page: str, language: str, name: str) -> None:
    text = (Path(ofan.__file__).parent / "docs" / page).read_text()
    assert f"```{language}\n{(EXPERIMENTS / name).read_text()}```\n" in text


def test_a_link_that_leads_nowhere_is_no_way_to_write_elsewhere(empty: Path) -> None:
    (empty / "demo.toml").symlink_to(empty / "elsewhere")
    code, text = run("copy", "demo")
    assert code == 1 and "exists already" in text
    assert not (empty / "elsewhere").exists()
