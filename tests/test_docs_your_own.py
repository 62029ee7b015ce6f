"""docs/your-own-load-balancer.md does what it says: all that it shows is run as it stands."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

import ofan

ROOT = Path(ofan.__file__).parent
PAGE = (ROOT / "docs" / "your-own-load-balancer.md").read_text(encoding="utf-8")
SMALL = ("--set", "collective.message_bytes=16KiB")
PARTS = ("fattree", "hostagent", "controller", "emulation", "sim", "p4src", "experiments")


class Block(NamedTuple):
    """A fenced block, and the last `file` that the text before it names."""

    language: str
    text: str
    file: str


def blocks() -> list[Block]:
    found = re.finditer(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [
        Block(match[1], match[2], re.findall(r"`([\w/]+\.\w+)`", PAGE[: match.start()])[-1])
        for match in found
    ]


def commands() -> list[str]:
    return [
        line for block in blocks() if block.language == "sh" for line in block.text.splitlines()
    ]


EMULATIONS = [command for command in commands() if " compare " not in command]


def changed(text: str, diff: str) -> str:
    """Apply a diff without line numbers; what it takes away must be there once."""
    lines = diff.splitlines()
    before = "".join(f"{line[1:]}\n" for line in lines if line[0] != "+")
    assert text.count(before) == 1, before
    return text.replace(before, "".join(f"{line[1:]}\n" for line in lines if line[0] != "-"))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader's folder: the page's program, and our experiments and includes."""
    folder = tmp_path_factory.mktemp("desk")
    for name in ("experiments", "p4src"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "two_choices.p4").write_text(
        next(block.text for block in blocks() if block.language == "p4")
    )
    return folder


def test_the_commands_of_the_page_run(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(desk)
    for command in EMULATIONS:
        words = shlex.split(command)[1:]
        result = CliRunner().invoke(
            ofan.cli, words + (list(SMALL) if words[0] == "emulate" else [])
        )
        assert result.exit_code == 0, f"{command}\n{result.output}"


def test_the_picture_and_the_program_are_where_the_page_says(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk)
    CliRunner().invoke(ofan.cli, [*shlex.split(EMULATIONS[0])[1:], *SMALL], catch_exceptions=False)
    folder = desk / "results" / "demo_two_choices"
    assert (folder / "comparison.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "two_choices.p4").read_text() == (desk / "two_choices.p4").read_text()


def test_the_simulator_of_the_page_equals_its_program(tmp_path: Path) -> None:
    """In a copy of the project, changed as the page says.

    Without numba's compiler, which would take a minute.
    """
    shutil.copy(ROOT / "ofan.py", tmp_path)
    for name in PARTS:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for block in blocks():
        match block.language:
            case "p4":
                (tmp_path / "p4src" / block.file).write_text(block.text)
            case "python":
                (tmp_path / block.file).write_text(block.text)
            case "diff":
                (tmp_path / block.file).write_text(
                    changed((tmp_path / block.file).read_text(), block.text)
                )
    command = next(command for command in commands() if " compare " in command)
    words = [sys.executable, "ofan.py", *shlex.split(command)[1:], *SMALL, "--json"]
    done = subprocess.run(
        words,
        cwd=tmp_path,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert {record["policy"] for record in answer["records"]} == {"two_choices", "jsq"}
    assert answer["differences"] == []
