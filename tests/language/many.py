"""Many random programs, from the command line: each is judged on its packets with both engines.

python -m tests.language.many --first 30000 --count 20000 --processes 2

prints the number of each program with a difference, and how much was compared. `comparing.compare`
makes a difference again from its number.
"""

from __future__ import annotations

import gc
import re
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context

import click
import pytest

from ofan_p4.softswitch.native import kept, machine
from tests.language.comparing import Verdict, compare
from tests.language.drawing_pieces import WIDE, WIDTHS

PACKETS = 20
# Programs that a process judges at once: it collects garbage behind them only.
CHUNK = 50
REPORTED = 1000
# Every so many programs, LLVM allocates registers as for short programs, else in its simple way, as
# for the longest: a sixth of the time goes there.
ALLOCATED = 4
SHIFT = re.compile(r"= (?:shl|lshr|ashr) i(\d+) [^,]+, (\d+)$", re.MULTILINE)


@contextmanager
def quick_machine_code(is_simple: bool = False) -> Iterator[None]:
    """Make machine code with little effort of LLVM (with none at all it fails on wide numbers).

    With `is_simple`, registers are allocated in the simple way, too.
    """
    make = machine.object_code

    def checked(text: str) -> bytes:
        # LLVM takes code behind a shift by all of a number's bits for code that is never reached:
        # a packet that comes there ends the process. Few packets do come there.
        assert [by for width, by in SHIFT.findall(text) if int(by) >= int(width)] == []

        return make(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "object_code", checked)
        # As long programs are.
        patch.setattr(machine, "LONG_LINES", 0)
        if is_simple:
            patch.setattr(machine, "MOST_LINES", 0)
        patch.setattr(kept, "read", lambda key: None)
        patch.setattr(kept, "write", lambda *parts: None)
        yield


@dataclass(slots=True)
class Tally:
    """Counts of the programs and packets compared, and of the programs that differ."""

    programs: int = 0
    packets: int = 0
    undefined: int = 0
    sent: int = 0
    refused: int = 0
    no_code: int = 0
    differences: int = 0

    def add(self, verdict: Verdict) -> None:
        """Count one more program."""
        self.programs += 1
        self.packets += verdict.judged
        self.undefined += verdict.undefined
        self.sent += verdict.sent
        self.refused += bool(verdict.refused)
        self.no_code += bool(verdict.no_code)
        self.differences += bool(verdict.difference)

    def line(self) -> str:
        """Return the counts as a line."""
        return (
            f"{self.programs:,} programs, {self.packets:,} packets compared "
            f"({self.sent:,} frames left), {self.undefined:,} undefined, {self.refused} programs "
            f"refused, {self.no_code} without machine code, {self.differences} differ"
        )


def judge(numbers: Sequence[int], is_wide: bool) -> list[Verdict]:
    """Judge the programs of these numbers; an exception is a difference, too."""
    verdicts = []
    for number in numbers:
        try:
            with quick_machine_code(is_simple=number % ALLOCATED > 0):
                verdict = compare(
                    number, PACKETS, ("python", "native"), WIDE if is_wide else WIDTHS
                )
        except Exception as error:
            verdict = Verdict(number, difference=f"{type(error).__name__}: {error}")
        verdicts.append(verdict)

    # A program leaves many objects: collecting whenever they are many takes a third of the time.
    gc.collect()
    return verdicts


def judged_in_processes(
    numbers: Sequence[int], is_wide: bool, processes: int
) -> Iterator[list[Verdict]]:
    """Yield the verdicts of chunk after chunk, in the order of their ends."""
    chunks = [numbers[i : i + CHUNK] for i in range(0, len(numbers), CHUNK)]
    with ProcessPoolExecutor(
        processes, mp_context=get_context("spawn"), initializer=gc.disable
    ) as pool:
        waiting = {pool.submit(judge, chunk, is_wide): chunk for chunk in chunks}
        try:
            for future in as_completed(waiting):
                verdicts = future.result()
                del waiting[future]
                yield verdicts
        except BrokenProcessPool:
            first = next(iter(waiting.values()))
            raise click.ClickException(
                f"a process ended by itself, near program {first[0]}"
            ) from None


@click.command()
@click.option("--first", default=30_000, show_default=True, help="Number of the first program.")
@click.option("--count", default=1000, show_default=True)
@click.option("--processes", default=1, show_default=True)
@click.option("--wide", is_flag=True, help="With numbers of hundreds of bits.")
def main(first: int, count: int, processes: int, wide: bool) -> None:
    """Judge so many programs on both engines; exit 1 where one differs."""
    begun = time.monotonic()
    tally = Tally()
    for verdicts in judged_in_processes(range(first, first + count), wide, processes):
        before = tally.programs // REPORTED
        for verdict in verdicts:
            tally.add(verdict)
            if verdict.difference:
                click.echo(f"program {verdict.seed}: {verdict.difference}")
        if tally.programs // REPORTED > before:
            click.echo(f"{time.monotonic() - begun:.0f} s: {tally.line()}")

    click.echo(f"{tally.line()}, {time.monotonic() - begun:.0f} s")
    sys.exit(1 if tally.differences else 0)


if __name__ == "__main__":
    main()
