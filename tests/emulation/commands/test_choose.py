"""`ofan choose`: the fabric that it answers for, and settings of a file that it does not use."""

from pathlib import Path

import pytest

import ofan


def chosen(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stopped:
        ofan.main(("choose", *arguments))

    return int(stopped.value.code or 0), capsys.readouterr().err


def test_settings_that_make_another_fabric_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = chosen(capsys, "--hosts", "96", "--set", "fabric.edges_per_pod=6")
    assert code == 2
    assert "--set makes a fabric of 72 hosts, and --hosts is 96: give FILE" in said


def test_the_fabric_and_unused_settings_of_a_file_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('policies = ["jsq"]\nseeds = 3\n[fabric]\nk = 4\n')
    # No time for any run.
    arguments = (str(file), "--minutes", "0.01", "--output", str(tmp_path / "answer"))
    _, said = chosen(capsys, *arguments)
    assert "choose: policies, seeds of mine.toml are not used: candidates are all that fit" in said
    assert "choose: 16 hosts: 4 pods, 8 edges of 2 hosts, 8 aggs, 4 cores; 800 Gb/s" in said
