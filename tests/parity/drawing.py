"""Of all pairs a few each time, and the others with the slow tests; messages of any length."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from hypothesis import strategies as st

# IPv4, UDP, BTH and ICRC; packets of less than 256 bytes are taken for ACKs by switches.
HEADERS = 44
SMALLEST_DATA = 256 - HEADERS


def pairs(rows: Sequence[Any], columns: Sequence[Any], quick: int = 1) -> list[ParameterSet]:
    """Return every pair as a parameter: of each row so many, taken in turn, and the others slow.

    So every row is tried each time, and every column with some of the rows.
    """
    return [
        pytest.param(
            row,
            column,
            id=f"{row}-{column}",
            marks=() if (index - number) % len(columns) < quick else pytest.mark.slow,
        )
        for number, row in enumerate(rows)
        for index, column in enumerate(columns)
    ]


def one_in(count: int, values: Iterable[Any], first: int = 0) -> list[ParameterSet]:
    """Return values as parameters: every `count`-th is quick, from `first` on; others are slow."""
    return [
        pytest.param(value, marks=() if index % count == first else pytest.mark.slow)
        for index, value in enumerate(values)
    ]


def sizes(packets: int, payload: int) -> st.SearchStrategy[int]:
    """Return how many bytes a message of so many packets may have: the last one may be short."""
    before = (packets - 1) * payload
    edges = (1, SMALLEST_DATA - 1, SMALLEST_DATA, payload - 1)
    last = st.one_of(st.just(payload), st.sampled_from(edges), st.integers(1, payload))
    return last.map(lambda size: before + size)
