"""The files of a report are whole, whatever ends the report or fills the disk."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from reproduction.report.drawing import _saved
from reproduction.report.figure import Preset
from reproduction.report.files import WALL, wall_s
from reproduction.report.stored import MADE_WITH, MadeWith
from sim.errors import StoreError

MADE = MadeWith(Preset("quick", 1), 0, 0, 0, "none", {}, {})


@contextmanager
def most_bytes(limit: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_does_not_lose_the_wall_time_of_earlier_calls(tmp_path: Path) -> None:
    wall_s(tmp_path, 1.5)
    with most_bytes(4), pytest.raises(OSError, match=WALL):
        wall_s(tmp_path, 2.0)

    assert wall_s(tmp_path, 0) == 1.5
    assert [path.name for path in tmp_path.iterdir()] == [WALL]


def test_a_wall_time_that_an_earlier_version_has_cut_off_is_one_line(tmp_path: Path) -> None:
    (tmp_path / WALL).write_text('{"wall_s')
    with pytest.raises(StoreError, match=rf"{WALL}: damaged: remove it"):
        wall_s(tmp_path, 1.0)


def test_a_full_disk_leaves_the_data_and_the_pictures_of_before(tmp_path: Path) -> None:
    picture, _ = plt.subplots()
    MADE.write(tmp_path)
    _saved(picture, tmp_path, "name", "")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with most_bytes(16), pytest.raises(OSError, match=MADE_WITH):
        MADE.write(tmp_path)

    with most_bytes(16), pytest.raises(OSError, match="name"):
        _saved(picture, tmp_path, "name", "")

    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
