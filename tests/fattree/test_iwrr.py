"""IWRR against its definition and the paper's worked example (appendix F)."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from fattree.routes.iwrr import interleave, simplify


def defined(weights: list[int], order: list[int]) -> list[int]:
    """Emit, in cycle c = 1 .. max weight, every port of the order whose weight is at least c."""
    return [
        port for cycle in range(1, max(weights) + 1) for port in order if weights[port] >= cycle
    ]


@st.composite
def weighted_rows(draw: st.DrawFn) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    rows, ports = draw(st.integers(1, 6)), draw(st.integers(1, 32))
    weights = draw(hnp.arrays(np.uint8, (rows, ports), elements=st.integers(0, 64)))
    orders = [draw(st.permutations(range(ports))) for _ in range(rows)]
    return weights, np.array(orders, dtype=np.int64)


def test_the_papers_worked_example() -> None:
    weights = simplify(np.array([[1600, 1600, 1600, 800]]))
    slots, lengths = interleave(weights, np.array([[2, 1, 3, 0]]))
    assert weights.tolist() == [[2, 2, 2, 1]]
    assert (slots + 1).tolist() == [3, 2, 4, 1, 3, 2, 1]
    assert lengths.tolist() == [7]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([4, 6, 0], [2, 3, 0]),
        ([2, 4, 8], [1, 2, 4]),
        ([6, 10, 15], [6, 10, 15]),
        ([0, 7, 0], [0, 1, 0]),
        ([0, 0], [0, 0]),
    ],
)
def test_weights_are_divided_by_all_that_they_share(row: list[int], expected: list[int]) -> None:
    assert simplify(np.array([row])).tolist() == [expected]


@pytest.mark.parametrize(
    ("row", "order", "expected"),
    [
        # Of equal weights the order decides, in every cycle.
        ([2, 1, 2], [2, 0, 1], [2, 0, 1, 2, 0]),
        ([2, 1, 2], [0, 1, 2], [0, 1, 2, 0, 2]),
        ([1, 3], [0, 1], [0, 1, 1, 1]),
        ([0, 1], [0, 1], [1]),
    ],
)
def test_a_cycle_visits_what_weighs_as_much_as_its_number(
    row: list[int], order: list[int], expected: list[int]
) -> None:
    assert interleave(np.array([row]), np.array([order]))[0].tolist() == expected


@given(weighted_rows())
def test_schedules_follow_the_definition(case: tuple[NDArray[np.uint8], NDArray[np.int64]]) -> None:
    weights, orders = case
    slots, lengths = interleave(weights, orders)
    expected = [
        defined(row, order) for row, order in zip(weights.tolist(), orders.tolist(), strict=True)
    ]
    assert slots.tolist() == [port for schedule in expected for port in schedule]
    assert lengths.tolist() == [len(schedule) for schedule in expected]


@given(weighted_rows())
def test_simplified_weights_are_proportional_and_have_no_common_divisor(
    case: tuple[NDArray[np.uint8], NDArray[np.int64]],
) -> None:
    for row, simple in zip(case[0].tolist(), simplify(case[0]).tolist(), strict=True):
        divisor = math.gcd(*row)
        assert [weight * divisor for weight in simple] == row
        assert math.gcd(*simple) == (1 if any(row) else 0)


@given(weighted_rows())
def test_no_port_is_a_cycle_ahead_of_its_weight(
    case: tuple[NDArray[np.uint8], NDArray[np.int64]],
) -> None:
    """After any number of slots of one pass, a port was served at most once more often than any
    port of greater weight.
    """
    weights, orders = case
    for row, order in zip(weights[:1], orders[:1], strict=True):
        slots, _ = interleave(row[None], order[None])
        served = np.cumsum(slots[:, None] == np.arange(len(row)), axis=0)
        for heavy in np.flatnonzero(row == row.max()) if len(slots) else ():
            assert (served <= served[:, [heavy]] + 1).all()
