"""Machine code is believed only where nobody else can have written it."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

import ofan_cache
from ofan_p4.softswitch.native import kept

NOBODY = 65534
NAME, BODY = "code", b"machine code"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes somebody else's files")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place for code below this test's own cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "no such folder"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    (tmp_path / "file").touch()
    cache = ofan_cache.place("test").folder
    assert cache is not None
    return cache


def test_what_is_kept_is_found_again(folder: Path, tmp_path: Path) -> None:
    assert folder == tmp_path / "cache" / "ofan" / "test"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert ofan_cache.read(folder, NAME) is None
    ofan_cache.write(folder, NAME, BODY)
    assert ofan_cache.read(folder, NAME) == BODY


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def move_another_here(path: Path) -> None:
    ofan_cache.write(path.parent, "another", b"other code")
    (path.parent / "another").replace(path)


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def leave_bare(path: Path) -> None:
    path.write_bytes(pickle.dumps("as numba would have it"))


def open_to_others(path: Path) -> None:
    path.chmod(0o602)


@pytest.mark.parametrize(
    "change", [damage, cut, move_another_here, link, pipe, leave_bare, open_to_others]
)
def test_what_has_been_changed_counts_as_not_there(
    folder: Path, change: Callable[[Path], None]
) -> None:
    ofan_cache.write(folder, NAME, BODY)
    change(folder / NAME)
    assert ofan_cache.read(folder, NAME) is None


@needs_root
def test_a_file_of_somebody_elses_counts_as_not_there(folder: Path) -> None:
    ofan_cache.write(folder, NAME, BODY)
    os.chown(folder / NAME, NOBODY, NOBODY)
    assert ofan_cache.read(folder, NAME) is None


@pytest.mark.parametrize("depth", range(3))
def test_no_folder_on_the_way_may_be_open_to_others(folder: Path, depth: int) -> None:
    (folder, *folder.parents)[depth].chmod(0o777)
    assert ofan_cache.place("test").folder is None


def test_a_sticky_folder_above_is_as_good_as_tmp(folder: Path) -> None:
    folder.parent.parent.chmod(0o1777)
    assert ofan_cache.place("test").folder == folder
    folder.chmod(0o1777)
    assert ofan_cache.place("test").folder is None


@needs_root
@pytest.mark.parametrize("depth", range(3))
def test_no_folder_on_the_way_may_be_somebody_elses(folder: Path, depth: int) -> None:
    os.chown((folder, *folder.parents)[depth], NOBODY, NOBODY)
    cache = ofan_cache.place("test")
    assert cache.folder is None
    assert "is not this user's to write" in cache.note


def test_one_of_our_folders_may_be_no_link(folder: Path) -> None:
    folder.rmdir()
    (folder.parent / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to("elsewhere")
    assert ofan_cache.place("test").folder is None


def test_a_relative_base_is_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert ofan_cache.place("test").folder is None
    assert list(folder.iterdir()) == []


def test_the_files_that_were_used_last_stay(folder: Path) -> None:
    for i in range(5):
        ofan_cache.write(folder, str(i), BODY)
        os.utime(folder / str(i), (i, i))
    assert ofan_cache.read(folder, "0") == BODY
    ofan_cache.write(folder, "new", BODY, limit=3)
    assert {path.name for path in folder.iterdir()} == {"0", "4", "new"}


def test_compiled_programs_are_pruned(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(ofan_cache.MOST_FILES + 20):
        kept.write(str(i), "{}", BODY)
    cache = kept.folder()
    assert cache is not None
    assert len(list(cache.iterdir())) == ofan_cache.MOST_FILES


def test_the_oldest_versions_go_with_their_files(folder: Path) -> None:
    for i in range(5):
        (folder / str(i)).mkdir()
        (folder / str(i) / "file").touch()
        os.utime(folder / str(i), (i, i))
    ofan_cache.prune_folders(folder, keep=folder / "0", limit=2)
    assert {path.name for path in folder.iterdir()} == {"0", "3", "4"}


def test_only_what_is_asked_for_is_read_before_switches_are_forked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "_preloaded", {})
    for key in ("mine", "another"):
        kept.write(key, "{}", key.encode())
    kept.preload(["mine", "missing"])
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    assert kept.read("mine") == ("{}", b"mine")
    assert kept.read("another") is None
