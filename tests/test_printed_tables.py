"""Tables that pages show as a command's output are the command's output of today."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

import ofan

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "docs/your-own-load-balancer.md")
# Commands that print a table, and that table.
SHOWN = re.compile(r"^```sh\n(ofan [^\n]*)\n```\n\n```text\n( load balancer.*?)^```$", re.M | re.S)
PROGRAM = re.compile(r"`(\w+\.p4)`, in any folder:\n\n```p4\n(.*?)^```$", re.M | re.S)
Rows = dict[str, dict[str, str]]


class Shown(NamedTuple):
    """A command of a page, and the table below it."""

    page: str
    command: str
    table: str


def shown() -> list[Shown]:
    return [
        Shown(page, *match.groups())
        for page in PAGES
        for match in SHOWN.finditer((ROOT / page).read_text(encoding="utf-8"))
    ]


def rows(text: str) -> Rows:
    """Return a table's cells by load balancer and column."""
    lines = [re.split(r"  +", line.strip()) for line in text.strip().splitlines()]
    (start,) = (number for number, cells in enumerate(lines) if cells[0] == "load balancer")
    head = lines[start]
    body = (cells for cells in lines[start + 2 :] if len(cells) == len(head))

    return {cells[0]: dict(zip(head, cells, strict=True)) for cells in body}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader's folder: examples, and the program of README."""
    for file in (ROOT / "experiments").glob("*.p*"):
        (tmp_path / file.name).symlink_to(file)

    for name, text in PROGRAM.findall((ROOT / "README.md").read_text(encoding="utf-8")):
        (tmp_path / name).write_text(text, encoding="utf-8")

    monkeypatch.chdir(tmp_path)


def test_there_are_tables_to_compare() -> None:
    assert [shown_table.page for shown_table in shown()] == [PAGES[0], *4 * PAGES[1:]]


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize("shown_table", shown()[:1], ids=lambda shown_table: shown_table.page)
def test_the_first_table_is_what_is_printed(shown_table: Shown) -> None:
    compare(shown_table)


@pytest.mark.slow
@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(
    "shown_table", shown()[1:], ids=lambda shown_table: shown_table.command[:40]
)
def test_tables_are_what_is_printed(shown_table: Shown) -> None:
    compare(shown_table)


def compare(shown_table: Shown) -> None:
    done = CliRunner().invoke(ofan.cli, shlex.split(shown_table.command)[1:])
    assert done.exit_code == 0, done.output
    printed = rows(done.stdout)
    kept = rows(shown_table.table)
    assert list(kept) == list(printed)
    # Pages leave columns out.
    for balancer, cells in kept.items():
        assert cells.items() <= printed[balancer].items(), balancer
