"""Of all pairs a few each time, and the others with the slow tests."""

from collections.abc import Sequence

import pytest
from _pytest.mark import ParameterSet


def pairs(rows: Sequence[str], columns: Sequence[str], quick: int = 1) -> list[ParameterSet]:
    """Return every pair as a parameter: of each row so many, taken in turn, and the others slow.

    So every row is tried each time, and every column with some of the rows.
    """
    return [
        pytest.param(
            row,
            column,
            id=f"{row}-{column}",
            marks=() if (at - number) % len(columns) < quick else pytest.mark.slow,
        )
        for number, row in enumerate(rows)
        for at, column in enumerate(columns)
    ]
