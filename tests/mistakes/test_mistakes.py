"""Mistakes of new users: each is one clear line, with its place, and its exit code.

The texts beside this file hold the mistakes: a name, the command, the files that are there, and
the text of stderr; `...` at its end stands for the rest of a list.
"""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

import ofan
import p4src
from fattree.texts.shipped import EXPERIMENTS

TEXTS = sorted(Path(__file__).parent.glob("*.txt"))
SECTION = re.compile(r"^-- (.+) --\n", re.MULTILINE)
COMPILES = "compiling the simulator's kernels"
EXIT = re.compile(r"stderr(?:, exit (\d))?")


class Mistake(NamedTuple):
    """A command, the files beside it, and how it ends."""

    name: str
    command: str
    files: dict[str, str]
    says: str
    code: int


def mistakes(path: Path) -> list[Mistake]:
    """Return the mistakes of a text."""
    _introduction, *cases = path.read_text(encoding="utf-8").split("\n## ")
    return [mistake(case) for case in cases]


def mistake(case: str) -> Mistake:
    head, *sections = SECTION.split(case)
    name, command = head.strip().split("\n$ ")
    *files, ending, says = sections
    exit_code = EXIT.fullmatch(ending)
    assert exit_code, f"{name}: what stderr says is the last section"
    return Mistake(
        name,
        command,
        dict(zip(files[::2], files[1::2], strict=True)),
        says.strip(),
        int(exit_code[1] or 2),
    )


ALL = [mistake_of_text for path in TEXTS for mistake_of_text in mistakes(path)]


def test_there_are_a_hundred() -> None:
    assert len(ALL) >= 100
    assert len({mistake_of_text.name for mistake_of_text in ALL}) == len(ALL)


@pytest.mark.parametrize("mistake", ALL, ids=lambda mistake_of_text: mistake_of_text.name)
def test_a_mistake_is_told_in_one_line(
    mistake: Mistake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in mistake.files.items():
        Path(name).write_text(text.replace("<BOM>", "\ufeff"), encoding="utf-8")

    with pytest.raises(SystemExit) as end:
        ofan.main(shlex.split(mistake.command)[1:])

    out, err = capsys.readouterr()
    # The first run on a machine also says for how long it compiles.
    lines = [line for line in err.strip().splitlines() if COMPILES not in line]
    said = "\n".join(map(str.rstrip, lines))
    expected = mistake.says.replace("EXPERIMENTS", str(EXPERIMENTS)).replace(
        "P4SRC", str(Path(p4src.__file__).parent)
    )
    assert end.value.code == mistake.code
    assert out == ""
    if expected.endswith(" ..."):
        assert said.startswith(f"ofan: {expected.removesuffix(' ...')}")
        assert "\n" not in said
    else:
        assert said == f"ofan: {expected}"
