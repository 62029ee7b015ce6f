"""Registers and counters of switches at the end of a run (`--show-registers`)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from emulation.outcomes.outcome import Outcome
from fattree.records.tables import Folding

# Of an array, in the table; the file has all.
MOST_CELLS = 6


def state_rows(outcomes: Iterable[Outcome]) -> Iterator[dict[str, Any]]:
    """Yield a row for each array of each run, for a file."""
    for outcome in outcomes:
        for array in outcome.state:
            yield {
                "policy": outcome.policy,
                "seed": outcome.scenario.seed,
                "switch": array.switch,
                "array": array.array,
                "cells": {str(number): list(values) for number, values in array.cells},
            }


def state_table(outcomes: Sequence[Outcome]) -> Folding:
    """Return a table of all arrays that hold something."""
    table = Folding("load balancer", "seed", "switch", "register or counter", "cells, by number")
    for outcome in outcomes:
        for array in outcome.state:
            table.add_row(
                outcome.policy,
                str(outcome.scenario.seed),
                array.switch,
                short_name(array.array),
                in_words(array.cells),
            )

    return table


def short_name(array: str) -> str:
    """Return an array's name with the instance that it lies in."""
    return ".".join(array.split(".")[-2:])


def in_words(cells: Iterable[tuple[int, Sequence[int]]]) -> str:
    """Return the first cells in one line, and how many more there are."""
    values_of_cells = list(cells)
    shown = [f"{number}: {_value(values)}" for number, values in values_of_cells[:MOST_CELLS]]
    hidden = len(values_of_cells) - len(shown)
    return "; ".join([*shown, *([f"and {hidden:,} more"] if hidden else [])])


def _value(values: Sequence[int]) -> str:
    if len(values) == 1:
        return f"{values[0]:,}"

    packets, size = values
    return f"{packets:,} packets, {size:,} B"
