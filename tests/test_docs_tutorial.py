"""docs/tutorial.md: its commands run in their order, and print its tables."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

import ofan

PAGE = (Path(ofan.__file__).parent / "docs" / "tutorial.md").read_text(encoding="utf-8")
FILE = re.compile(r"`(\w+\.\w+)`, in (?:any|the same) folder:\n\n```\w+\n(.*?)^```$", re.M | re.S)
STEP = re.compile(r"^```sh\n(ofan [^\n]*)\n```\n(?:\n```text\n(.*?)^```$)?", re.M | re.S)
STEPS = STEP.findall(PAGE)
WIDE = 200


def cells(text: str) -> list[dict[str, str]]:
    """Return the rows of a printed table, by column."""
    lines = [re.split(r"  +", line.strip()) for line in text.strip().splitlines()]
    start = next(number for number, line in enumerate(lines) if "load balancer" in line)
    head = lines[start]
    rows = (line for line in lines[start + 2 :] if len(line) == len(head))
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_the_page_has_the_steps_that_it_says() -> None:
    assert len(STEPS) == 7
    assert sum(bool(table) for _, table in STEPS) == 5
    assert [name for name, _ in FILE.findall(PAGE)] == ["keep.p4", "keep.toml"]


@pytest.mark.slow
def test_every_command_runs_and_prints_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(WIDE))
    for name, text in FILE.findall(PAGE):
        Path(name).write_text(text, encoding="utf-8")

    for command, table in STEPS:
        # Processes take longer to start than these runs do.
        jobs = ("--jobs", "1") if " sweep " in command else ()
        done = CliRunner().invoke(ofan.cli, [*shlex.split(command)[1:], *jobs])
        assert done.exit_code == 0, f"{command}\n{done.output}"
        if not table:
            continue

        shown = cells(table)
        assert shown, command
        printed = cells(done.stdout)
        for row in shown:
            assert any(row.items() <= printed_row.items() for printed_row in printed), (
                command,
                row,
                printed,
            )

    assert Path("kept/comparison.png").read_bytes().startswith(b"\x89PNG")
