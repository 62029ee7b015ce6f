"""Files on a full disk: one line that names the file, and no part of it."""

import os
from pathlib import Path

import pytest

import ofan
from fattree.files import whole_file
from fattree.files.whole_file import write_whole

RUN = ("sim", "run", "--k", "2", "--message-bytes", "4096")


def full(path: Path, content: bytes) -> int:
    """Write as much as a full disk takes."""
    with path.open("wb") as file:
        file.write(content[:3])

    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("--csv", "x.csv"),
        ("--parquet", "x.parquet"),
        ("--flows", "x.parquet"),
        ("--flows", "x.csv"),
        ("--cdf", "x.png"),
    ],
)
def test_a_full_disk_is_one_line_with_the_file(
    option: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(whole_file, "fill", full)
    file = tmp_path / name
    with pytest.raises(SystemExit) as ended:
        ofan.main([*RUN, option, str(file)])

    line = capsys.readouterr().err.splitlines()[-1]
    assert ended.value.code == 2
    assert str(file) in line and line.endswith("No space left on device")
    assert not file.exists()


def test_a_file_that_was_there_stays_as_it_was_where_a_write_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old"
    old.write_text("x")
    old.chmod(0o640)
    write_whole(old, b"new")
    assert old.read_bytes() == b"new" and old.stat().st_mode & 0o777 == 0o640
    with pytest.raises(OSError, match="no/x"):
        write_whole(tmp_path / "no" / "x", b"")

    monkeypatch.setattr(whole_file, "fill", full)
    for name in ("old", "another"):
        with pytest.raises(OSError, match=f"No space left on device: '.*/{name}'"):
            write_whole(tmp_path / name, b"newest")

    assert old.read_bytes() == b"new" and [*tmp_path.iterdir()] == [old]


def test_a_link_leads_to_the_file_that_is_written_and_a_device_gets_the_bytes(
    tmp_path: Path,
) -> None:
    (tmp_path / "link").symlink_to("file")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "file").read_bytes() == b"new" and (tmp_path / "link").is_symlink()
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write_whole(Path("/dev/full"), b"x")

    # A loop of links leads nowhere.
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    write_whole(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"


def test_an_open_file_stays_the_same_file(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        write_whole(Path(f"/proc/self/fd/{file.fileno()}"), b"rows")
        assert os.fstat(file.fileno()).st_ino == (tmp_path / "out").stat().st_ino

    assert (tmp_path / "out").read_bytes() == b"rows"


def test_runs_are_shown_where_their_file_cannot_be_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for option in ("--csv", "--parquet"):
        with pytest.raises(SystemExit) as ended:
            ofan.main([*RUN, "--policies", "ofan", option, "/dev/full"])

        out, err = capsys.readouterr()
        assert ended.value.code == 2 and "Ofan" in out
        assert err.splitlines()[-1].endswith("No space left on device")
