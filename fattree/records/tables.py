"""Tables for people and as CSV: a narrow terminal gets several blocks of columns, and none cut."""

import csv
import io
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD, Box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from fattree.files.whole_file import write_whole

# A pipe has no width, and its reader wants a row in a line.
WIDTH_OF_PIPES = 1000
STDOUT = Path("-")
# Characters that rich puts between columns and around them, in a box and without.
GAPS = {True: 3, False: 2}
EDGES = {True: 2, False: 0}
Cell = str | Text


def width_of_stdout(of_pipes: int) -> int | None:
    """Return the width of stdout if it is no terminal and COLUMNS is not set, else None."""
    return None if sys.stdout.isatty() or os.environ.get("COLUMNS") else of_pipes


def terminal() -> Console:
    """Return stdout as a console, with the width of the terminal or COLUMNS, else of pipes."""
    width = width_of_stdout(WIDTH_OF_PIPES)
    # Names and folders may have brackets, which are no markup.
    return Console(width=width, highlight=False, markup=False)


class Folding:
    """A table that folds: blocks of as many columns as fit, each behind the first `keys`.

    Columns of `texts` are aligned to the left, all others to the right.
    """

    def __init__(
        self,
        *headings: str,
        keys: int = 1,
        texts: Iterable[int] = (0,),
        title: str = "",
        box: Box | None = SIMPLE_HEAD,
    ) -> None:
        self.headings = headings
        self.keys = keys
        self.texts = frozenset(texts)
        self.title = title
        self.box = box
        self.rows: list[Sequence[Cell]] = []

    def add_row(self, *cells: Cell) -> None:
        """Add a row with a cell for each heading."""
        if len(cells) != len(self.headings):
            raise ValueError(f"{len(cells)} cells for {len(self.headings)} columns")

        self.rows.append(cells)

    def blocks(self, width: int) -> list[list[int]]:
        """Return which columns stand beside each other in so many characters, block by block.

        Blocks are about as wide as each other, so that the last is no column alone.
        """
        blocks = self._filled(width)
        # With a block for each column, no width gives another block, and narrowing has no end.
        bound = len(self.headings) - self.keys
        while 1 < len(blocks) < bound and len(narrower := self._filled(width - 1)) == len(blocks):
            width -= 1
            blocks = narrower

        return blocks

    def _filled(self, width: int) -> list[list[int]]:
        """Return blocks of which each but the last has no room for another column."""
        sizes = [self._size(column) for column in range(len(self.headings))]
        keys = list(range(self.keys))
        gap, edge = GAPS[bool(self.box)], EDGES[bool(self.box)]
        blocks = [keys]
        for column in range(self.keys, len(sizes)):
            beside = [*blocks[-1], column]
            needed = edge + sum(sizes[shown] for shown in beside) + gap * (len(beside) - 1)
            if needed <= width or blocks[-1] == keys:
                blocks[-1] = beside
            else:
                blocks.append([*keys, column])

        return blocks

    def width_of_keys(self) -> int:
        """Return how many characters the keys take."""
        sizes = [self._size(column) for column in range(self.keys)]
        return EDGES[bool(self.box)] + sum(sizes) + GAPS[bool(self.box)] * (len(sizes) - 1)

    def _size(self, column: int) -> int:
        cells = [self.headings[column], *(row[column] for row in self.rows)]
        return max(cell_len(line) for cell in cells for line in str(cell).split("\n"))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield one table per block; the title stands above the first."""
        for number, columns in enumerate(self.blocks(options.max_width)):
            table = self._table(columns, self.title if number == 0 else "")
            lines = console.render_lines(table, options, pad=False)
            # The upper edge is air, of which only a terminal's reader has something.
            is_air = number == 0 and self.box and not (self.title or console.is_terminal)
            for line in lines[1 if is_air else 0 :]:
                yield from line if console.is_terminal else _stripped(line)
                yield Segment.line()

    def _table(self, columns: Sequence[int], title: str) -> Table:
        table = Table(
            title=title or None,
            title_justify="left",
            title_style="bold",
            header_style="bold",
            box=self.box,
            pad_edge=False,
        )

        for column in columns:
            # Folded, in the rare case that one column alone is too wide: rich's own way is to cut.
            is_text = column in self.texts
            table.add_column(
                self.headings[column], justify="left" if is_text else "right", overflow="fold"
            )

        for row in self.rows:
            table.add_row(*(row[column] for column in columns))

        return table


def _stripped(line: Sequence[Segment]) -> list[Segment]:
    """Return a line of a table without the blanks at its end."""
    kept = list(line)
    while kept and not kept[-1].text.strip():
        kept.pop()

    if kept:
        kept[-1] = Segment(kept[-1].text.rstrip(), *kept[-1][1:])

    return kept


def write_csv(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write rows as CSV, to stdout for `-`; lists are joined by spaces, None is empty.

    Raises ClickException, one line, where the file cannot be written.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _plain(value) for name, value in row.items()} for row in rows)
    if path == STDOUT:
        sys.stdout.write(text.getvalue())
        # A reader that has closed the pipe is noticed here, and not when Python ends.
        sys.stdout.flush()
        return

    try:
        write_whole(path, text.getvalue().encode())
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))

    # As JSON and Polars write them.
    return str(value).lower() if isinstance(value, bool) else value
