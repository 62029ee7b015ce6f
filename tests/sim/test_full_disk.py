"""Files on a full disk: one line that names the file, and no part of it."""

from pathlib import Path

import pytest

import ofan
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
    monkeypatch.setattr(Path, "write_bytes", full)
    file = tmp_path / name
    with pytest.raises(SystemExit) as ended:
        ofan.main([*RUN, option, str(file)])

    line = capsys.readouterr().err.splitlines()[-1]
    assert ended.value.code == 2
    assert str(file) in line and line.endswith("No space left on device")
    assert not file.exists()


def test_a_file_that_was_there_is_not_removed(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("x")
    old.chmod(0o644)
    with pytest.raises(OSError, match="no/x"):
        write_whole(tmp_path / "no" / "x", b"")

    write_whole(old, b"new")
    assert old.read_bytes() == b"new"
