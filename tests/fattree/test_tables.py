"""Tables fold on a narrow terminal: every column and cell is there, whole, at any width."""

import csv
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from fattree.records.tables import Folding, terminal, write_csv

HEADINGS = ("load balancer", "CCT (µs)", "over bound", "E>A", "A>C", "drops", "lost")
CELLS = ("Switch Pkt AR", "17.18 ± 0.02", "0.73 ± 0.14 %", "192.0", "192.0", "1,234", "5")


def printed(width: int, box: bool = True) -> str:
    table = Folding(*HEADINGS, title="a title") if box else Folding(*HEADINGS, box=None)
    table.add_row(*CELLS)
    page = StringIO()
    Console(file=page, width=width).print(table)
    return page.getvalue()


@pytest.mark.parametrize("box", [True, False])
@pytest.mark.parametrize("width", [40, 60, 79, 80, 100, 132])
def test_no_column_is_lost_and_no_line_is_wider_than_the_terminal(width: int, box: bool) -> None:
    page = printed(width, box)
    assert [heading for heading in (*HEADINGS, *CELLS) if heading not in page] == []
    assert max(map(len, page.splitlines())) <= width


def test_what_fits_is_one_table_and_each_block_repeats_the_first_column() -> None:
    assert printed(132).count("Switch Pkt AR") == 1
    assert printed(60).count("Switch Pkt AR") == 2
    assert printed(60).count("a title") == 1


@pytest.mark.parametrize("columns, widest", [("60", 60), (None, 1000)])
def test_a_pipe_is_as_wide_as_columns_says_or_as_what_is_written(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    columns: str | None,
    widest: int,
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)

    table = Folding(*HEADINGS)
    table.add_row(*CELLS)
    terminal().print(table)
    rows = [line for line in capsys.readouterr().out.splitlines() if "Switch Pkt AR" in line]
    assert len(rows) == (2 if columns else 1) and max(map(len, rows)) <= widest


def test_a_table_into_a_pipe_begins_with_its_headings(capsys: pytest.CaptureFixture[str]) -> None:
    table = Folding("name", "value")
    table.add_row("a", "1")
    terminal().print(table)
    assert capsys.readouterr().out.splitlines()[0].split() == ["name", "value"]


def test_blocks_are_about_as_wide_as_each_other() -> None:
    table = Folding("load balancer", *(f"column {number}" for number in range(7)))
    table.add_row("Ofan", *("1" for _ in range(7)))
    assert [len(block) for block in table.blocks(80)] == [5, 4]


@pytest.mark.parametrize("width", [1, 20])
def test_a_block_for_each_column_is_the_end_of_narrowing(width: int) -> None:
    table = Folding("name", "found", "needed for", keys=1)
    table.add_row("netem", "x" * 30, "y" * 30)
    assert table.blocks(width) == [[0, 1], [0, 2]]


def test_lines_into_a_pipe_have_no_blanks_at_their_ends(capsys: pytest.CaptureFixture[str]) -> None:
    table = Folding("load balancer", "text", texts=(0, 1))
    table.add_row("Ofan", "longer than its heading")
    table.add_row("JSQ", "short")
    terminal().print(table)
    assert all(line == line.rstrip() for line in capsys.readouterr().out.splitlines())


def test_a_row_has_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Folding("a", "b").add_row("1")


def test_csv_has_lists_joined_and_nothing_for_none(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    write_csv([{"a": [1, 2], "b": None, "up": True}, {"a": [], "b": "x, y", "up": False}], path)
    assert list(csv.reader(path.read_text().splitlines())) == [
        ["a", "b", "up"],
        ["1 2", "", "true"],
        ["", "x, y", "false"],
    ]
