"""What a person sees of many runs: a bar on a terminal, a line every few seconds elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from sim.sweeps import Report

LINE_SECONDS = 5.0
MINUTE = 60
HOUR = 3600


@contextmanager
def reporting(what: str) -> Iterator[Report]:
    """Show how far the runs of `what` are on stderr, and how long the rest may take.

    First say what was there already.
    """
    # stdout is for results, so that it can be piped while progress is seen.
    if not sys.stderr.isatty():
        yield Lines(what)
        return

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )

    # Runs of a sweep differ in length, large fabrics often last: a speed over ten minutes.
    estimate = (TextColumn("left"), TimeRemainingColumn())
    with Progress(
        *columns, *estimate, console=Console(stderr=True), transient=True, speed_estimate_period=600
    ) as progress:
        task = progress.add_task(what, total=None)
        found: list[int] = []

        def report(finished: int, total: int) -> None:
            if finished and not found:
                progress.console.print(_there(what, finished, total), highlight=False)

            found.append(finished)
            progress.update(task, completed=finished, total=total)

        yield report


def _there(what: str, finished: int, total: int) -> str:
    return f"{what}: {finished:,} of {total:,} runs are there already"


@dataclass(slots=True)
class Lines:
    """A report in plain lines, `LINE_SECONDS` apart at least; a short sweep prints none."""

    what: str
    clock: Callable[[], float] = time.monotonic
    began: float = field(init=False)
    printed: float = field(init=False)
    found: int | None = None

    def __post_init__(self) -> None:
        self.began = self.printed = self.clock()

    def __call__(self, finished: int, total: int) -> None:
        """Take in that `finished` of `total` runs are done."""
        now = self.clock()
        if self.found is None:
            self.found = finished
            if finished:
                click.echo(_there(self.what, finished, total), err=True)
        elif now - self.printed >= LINE_SECONDS and finished < total:
            self.printed = now
            # What was there already cost no time, so it says nothing about the speed.
            left = (now - self.began) / (finished - self.found) * (total - finished)
            click.echo(
                f"{self.what}: {finished:,} of {total:,} runs, about {duration(left)} left",
                err=True,
            )


def duration(seconds: float) -> str:
    """Return a time for people: 40 s, 12 min, 3.5 h."""
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"

    return f"{seconds / MINUTE:.0f} min" if seconds < 2 * HOUR else f"{seconds / HOUR:.1f} h"
