"""The progress of many runs: a bar on a terminal, rare lines elsewhere.

The time that is left comes from the done share of the work, by the cost of runs, not by their
number: runs of large fabrics take a thousand times as long.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from fattree.files.memory import GIGABYTE
from sim.sweeps.cost import Cost, least_seconds

# Lines are read in logs: each comes after twice the time of the last, up to five minutes.
LINE_SECONDS = 5.0
MOST_LINE_SECONDS = 300.0
# Below, the time that is left is not shown: the first packets are no measure of the rest.
LEAST_SHARE = 0.02
# Unless the work has gone on for so long: then they do.
LEAST_SECONDS = 60.0
MINUTE = 60
# Senders that go on for less are not mentioned.
LEAST_MORE_SECONDS = 10
HOUR = 3600
Clock: TypeAlias = Callable[[], float]


@contextmanager
def reporting(title: str) -> "Iterator[Lines | Bar]":
    """Show how far the runs of `what` are on stderr, and how long the rest may take.

    First a line names the runs that were there already.
    """
    # stdout is for results, so that it can be piped while progress is seen.
    if not sys.stderr.isatty():
        yield Lines(title)
        return

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %, {task.fields[runs]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bar(title, progress, progress.add_task(title, total=1.0, runs="", left=""))


@dataclass(slots=True)
class Pace:
    """An estimate of the time that the rest of some work takes."""

    clock: Clock = time.monotonic
    began: float | None = None

    def left(self, share: float) -> str:
        """Return for example `about 40 s left`; nothing while that is unknown."""
        now = self.clock()
        # Processes are started and kernels compiled before the first share is reported.
        if self.began is None:
            self.began = now

        passed = now - self.began
        is_telling = share >= LEAST_SHARE or passed >= LEAST_SECONDS
        if not (is_telling and 0 < share < 1):
            return ""

        return f"about {duration(passed * (1 - share) / share)} left"


@dataclass(slots=True)
class Bar:
    """A bar that moves with the work, within runs, too, and ends at the whole."""

    title: str
    progress: Progress
    task: TaskID
    pace: Pace = field(default_factory=Pace)
    is_told: bool = False

    def expect(self, cost: Cost) -> None:
        """Take in the cost of the work; warn at once that it is long or large."""
        for line in _warnings(self.title, cost):
            self.progress.console.print(line, highlight=False)

    def __call__(self, finished: int, total: int) -> None:
        """Take in that `finished` of `total` runs are done."""
        if finished and not self.is_told:
            self.progress.console.print(_there(self.title, finished, total), highlight=False)

        self.is_told = True
        self.progress.update(self.task, runs=f"{finished:,} of {total:,} runs")
        if finished == total:
            self.progress.update(self.task, completed=1.0)

    def watch(self, share: float) -> None:
        """Take in which share of the work is done."""
        self.progress.update(self.task, completed=share, left=self.pace.left(share))


@dataclass(slots=True)
class Lines:
    """A report in plain lines, rarer and rarer; a short sweep prints none."""

    title: str
    clock: Clock = time.monotonic
    pace: Pace = field(init=False)
    printed: float = field(init=False)
    pause: float = LINE_SECONDS
    runs: str = ""

    def __post_init__(self) -> None:
        self.printed = self.clock()
        self.pace = Pace(self.clock)

    def expect(self, cost: Cost) -> None:
        """Take in the cost of the work; warn at once that it is long or large."""
        for line in _warnings(self.title, cost):
            click.echo(line, err=True)

    def __call__(self, finished: int, total: int) -> None:
        """Take in that `finished` of `total` runs are done."""
        if finished and not self.runs:
            click.echo(_there(self.title, finished, total), err=True)

        self.runs = f"{finished:,} of {total:,} runs"

    def watch(self, share: float) -> None:
        """Take in which share of the work is done; print a line, if it is time."""
        time_left = self.pace.left(share)
        now = self.clock()
        if time_left and now - self.printed >= self.pause:
            self.printed = now
            self.pause = min(2 * self.pause, MOST_LINE_SECONDS)
            click.echo(
                f"{self.title}: {self.runs}, {_percent(share)} of the work, {time_left}", err=True
            )


def _warnings(title: str, cost: Cost) -> Iterator[str]:
    """Yield lines on work that takes a processor minutes, or more than a gigabyte of memory."""
    seconds = least_seconds(cost.hops)
    if seconds >= MINUTE:
        least = f"one processor takes at least {duration(seconds)} for {cost.hops:.2g} packet-hops"
        yield f"{title}: {least}"

    more_seconds = least_seconds(cost.more_hops)
    if more_seconds >= LEAST_MORE_SECONDS:
        yield (
            f"{title}: senders whose packets are dropped go on for a round trip: up to"
            f" {cost.more_hops:.2g} more packet-hops, {duration(more_seconds)}"
        )

    if cost.packet_bytes >= GIGABYTE:
        gigabytes = cost.packet_bytes / GIGABYTE
        yield f"{title}: packets under way take up to {gigabytes:.1f} GB of memory"


def _there(title: str, finished: int, total: int) -> str:
    return f"{title}: {finished:,} of {total:,} runs are there already"


def _percent(share: float) -> str:
    """Return a share as people read it: 12 %, 0.03 %."""
    percent = 100 * share
    return f"{percent:.0f} %" if percent >= 1 else f"{percent:.1g} %"


def duration(seconds: float) -> str:
    """Return a time for people: 40 s, 12 min, 3.5 h."""
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"

    return f"{seconds / MINUTE:.0f} min" if seconds < 2 * HOUR else f"{seconds / HOUR:.1f} h"
