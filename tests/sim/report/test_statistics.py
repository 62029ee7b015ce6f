"""Means, intervals, exponents and ranks, against cases worked out by hand or by numpy."""

import math

import numpy as np
import pytest

from sim.report.statistics import (
    NORMAL,
    Estimate,
    apart,
    estimate,
    exponent,
    paired,
    rank_correlation,
    student_t,
)


def test_interval_of_two_values_uses_twelve_standard_errors() -> None:
    found = estimate([1, 3])
    assert (found.mean, found.count) == (2, 2)
    assert found.half == pytest.approx(12.706)


def test_one_value_has_no_interval() -> None:
    found = estimate([5])
    assert math.isnan(found.half)
    assert not found.differs
    assert f"{found:.1f}" == "5.0"


@pytest.mark.parametrize(
    ("degrees", "quantile"), [(1, 12.706), (9, 2.262), (29, 2.045), (30, 2.042), (31, NORMAL)]
)
def test_students_t(degrees: int, quantile: float) -> None:
    assert student_t(degrees) == quantile


@pytest.mark.parametrize(
    ("first", "second", "differs"),
    [
        ([10, 20, 30], [9, 19, 29.1], True),
        ([10, 20, 30], [9, 21, 30], False),
        ([1, 1, 1], [1, 1, 1], False),
    ],
)
def test_pairs_differ_only_if_every_seed_does_alike(
    first: list[float], second: list[float], differs: bool
) -> None:
    assert paired(first, second).differs is differs


def test_intervals_hold_the_mean_as_often_as_they_promise() -> None:
    rng = np.random.default_rng(1)
    inside = sum(
        abs((found := estimate(rng.normal(3, 2, 10))).mean - 3) <= found.half for _ in range(2000)
    )
    assert 0.935 < inside / 2000 < 0.965


@pytest.mark.parametrize("power", [0, 0.5, 1])
def test_exponent_of_a_power_law(power: float) -> None:
    sizes = np.array([8, 16, 32, 64])
    found = exponent(sizes, 3 * sizes**power)
    assert found.mean == pytest.approx(power)
    assert found.half == pytest.approx(0, abs=1e-9)


def test_exponent_leaves_out_empty_queues() -> None:
    assert exponent([1, 2, 4, 8], [0, 2, 4, 8]).mean == pytest.approx(1)


@pytest.mark.parametrize(
    ("second", "correlation"),
    [([1, 2, 3, 4], 1), ([4, 3, 2, 1], -1), ([1, 3, 2, 4], 0.8), ([1, 1, 2, 2], 2 / math.sqrt(5))],
)
def test_rank_correlation(second: list[float], correlation: float) -> None:
    assert rank_correlation([10, 20, 30, 40], second) == pytest.approx(correlation)


def test_errors_of_independent_means_add_up_as_squares() -> None:
    found = apart(Estimate(5.0, 3.0, 10), Estimate(2.0, 4.0, 8))
    assert (found.mean, found.half, found.count) == (3.0, 5.0, 8)
