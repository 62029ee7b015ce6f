"""Results folders: what is there stays, unless somebody says otherwise."""

from pathlib import Path

import pytest

from emulation.errors import EmulationError
from emulation.outcomes.folder import RESULTS, results_folder


def finish(folder: Path) -> None:
    (folder / RESULTS).parent.mkdir(parents=True, exist_ok=True)
    (folder / RESULTS).write_text("kept")


def test_another_run_of_the_same_name_gets_the_next_number(tmp_path: Path) -> None:
    default = tmp_path / "demo"
    names = []
    for _ in range(3):
        names.append(results_folder(None, default).name)
        finish(tmp_path / names[-1])

    assert names == ["demo", "demo_2", "demo_3"]


def test_a_folder_of_folders_with_results_counts_too(tmp_path: Path) -> None:
    finish(tmp_path / "demo" / "demo_failure")
    assert results_folder(None, tmp_path / "demo").name == "demo_2"


def test_a_run_that_left_nothing_does_not_take_a_name(tmp_path: Path) -> None:
    results_folder(None, tmp_path / "demo")
    assert results_folder(None, tmp_path / "demo").name == "demo"


def test_a_chosen_folder_with_results_is_refused_but_for_force(tmp_path: Path) -> None:
    finish(tmp_path / "mine")
    with pytest.raises(EmulationError, match=r"mine has results already: .* --force replaces"):
        results_folder(tmp_path / "mine", tmp_path / "demo")

    assert results_folder(tmp_path / "mine", tmp_path / "demo", force=True) == tmp_path / "mine"
