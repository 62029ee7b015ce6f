"""Results folders: earlier results and those of runs at the same time stay."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier

import pytest

from emulation.errors import EmulationError
from emulation.outcomes import folder as results_folder
from emulation.outcomes.folder import LOG, RESULTS, complete, new_folder


@pytest.fixture
def runs() -> Iterator[ExitStack]:
    """Runs that have not ended."""
    with ExitStack() as stack:
        yield stack


def finish(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RESULTS).write_text("kept")


def run(chosen: Path | None, default: Path, force: bool = False) -> str:
    """Return the name of the folder that a run has got."""
    with new_folder(chosen, default, force) as folder:
        finish(folder)
        return folder.name


def test_another_run_of_the_same_name_gets_the_next_number(tmp_path: Path) -> None:
    assert [run(None, tmp_path / "demo") for _ in range(3)] == ["demo", "demo_2", "demo_3"]


def test_a_folder_of_folders_with_results_counts_too(tmp_path: Path) -> None:
    finish(tmp_path / "demo" / "demo_failure")
    assert run(None, tmp_path / "demo") == "demo_2"


def test_a_run_that_left_nothing_does_not_take_a_name(tmp_path: Path) -> None:
    with new_folder(None, tmp_path / "results" / "demo"):
        pass

    assert not list(tmp_path.iterdir())
    assert run(None, tmp_path / "results" / "demo") == "demo"


def test_a_folder_that_a_killed_run_left_is_used(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    assert run(None, tmp_path / "demo") == "demo"


def test_a_chosen_folder_with_results_is_refused_but_for_force(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    finish(mine)
    with pytest.raises(EmulationError, match=r"mine has results already: .* --force replaces"):
        run(mine, tmp_path / "demo")

    assert run(mine, tmp_path / "demo", force=True) == "mine"


def test_runs_at_the_same_time_get_folders_of_their_own(tmp_path: Path, runs: ExitStack) -> None:
    folders = [runs.enter_context(new_folder(None, tmp_path / "demo")) for _ in range(3)]
    assert [folder.name for folder in folders] == ["demo", "demo_2", "demo_3"]


@pytest.mark.parametrize("is_chosen", [False, True])
@pytest.mark.parametrize("force", [False, True])
def test_the_folder_of_a_run_that_has_not_ended_is_refused(
    tmp_path: Path, runs: ExitStack, is_chosen: bool, force: bool
) -> None:
    """Even --force replaces results that are there, not those to come."""
    chosen = tmp_path / "demo" if is_chosen else None
    runs.enter_context(new_folder(chosen, tmp_path / "demo", force))
    if not (is_chosen or force):
        assert run(chosen, tmp_path / "demo") == "demo_2"
        return

    with pytest.raises(EmulationError, match=r"demo is the folder of a run that has not ended: "):
        run(chosen, tmp_path / "demo", force)


def test_a_link_to_a_folder_may_be_chosen(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "mine").symlink_to("there")
    run(tmp_path / "mine", tmp_path / "demo")
    assert (tmp_path / "there" / RESULTS).exists()


def test_runs_that_begin_together_lose_no_results(tmp_path: Path) -> None:
    """Threads open folders for themselves, as processes do."""
    together = Barrier(8)

    def racer(_number: int) -> str:
        together.wait()
        return run(None, tmp_path / "results" / "demo")

    with ThreadPoolExecutor(8) as pool:
        names = set(pool.map(racer, range(8)))

    assert names == {"demo", *(f"demo_{number}" for number in range(2, 9))}


def test_a_run_removes_no_folder_that_another_has_claimed_since_it_began(
    tmp_path: Path, runs: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = []

    def has_results(path: Path) -> bool:
        """Let another run begin before the first look at a folder."""
        monkeypatch.undo()
        theirs.append(runs.enter_context(new_folder(None, path)))
        return False

    monkeypatch.setattr(results_folder, "_has_results", has_results)
    assert run(None, tmp_path / "results" / "demo") == "demo_2"
    assert [path.name for path in theirs if path.is_dir()] == ["demo"]


def write_and_be_killed(folder: Path) -> None:
    """Write results in a process that is killed before they are complete."""
    if pid := os.fork():
        assert os.waitpid(pid, 0)[1] == signal.SIGKILL
        return

    with complete(folder) as fresh:
        (fresh / RESULTS).write_text("a part")
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("folder", [".", "demo_failure"])
def test_results_that_a_killed_run_was_writing_are_removed(tmp_path: Path, folder: str) -> None:
    write_and_be_killed(tmp_path / folder)
    assert list(tmp_path.rglob(RESULTS))
    with new_folder(tmp_path, tmp_path / "demo"):
        assert not list(tmp_path.rglob(RESULTS))


def test_results_that_another_run_is_writing_in_a_folder_of_ours_stay(tmp_path: Path) -> None:
    with complete(tmp_path / "theirs") as fresh:
        (fresh / RESULTS).write_text("theirs")
        with new_folder(tmp_path, tmp_path / "demo"):
            pass

    assert (tmp_path / "theirs" / RESULTS).read_text() == "theirs"


def test_a_folder_has_results_only_with_all_other_files(tmp_path: Path) -> None:
    # A folder in the place of the log: it can only be refused.
    (tmp_path / LOG / "full").mkdir(parents=True)
    with (
        pytest.raises(EmulationError, match="cannot write results"),
        complete(tmp_path) as fresh,
    ):
        for name in (RESULTS, LOG):
            (fresh / name).write_text("new")

    assert not (tmp_path / RESULTS).exists()
