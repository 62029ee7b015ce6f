"""Means, intervals, exponents and ranks, against cases worked out by hand or by numpy."""

import math

import numpy as np
import pytest

from reproduction.report.statistics import (
    Estimate,
    apart,
    estimate,
    exponent,
    one_direction,
    paired,
    proportion,
    rank_correlation,
)


def test_interval_of_two_values_uses_ninety_standard_errors() -> None:
    interval = estimate([1, 3])
    assert (interval.mean, interval.count) == (2, 2)
    assert interval.half == pytest.approx(89.123)


def test_one_value_has_no_interval() -> None:
    interval = estimate([5])
    assert math.isnan(interval.half)
    assert not interval.differs
    assert f"{interval:.1f}" == "5.0"


@pytest.mark.parametrize(
    ("successes", "count", "is_most"),
    [(10, 10, True), (9, 10, None), (5, 10, None), (0, 10, False), (18, 20, True)],
)
def test_a_share_is_most_where_its_interval_says_so(
    successes: int, count: int, is_most: bool | None
) -> None:
    assert proportion(successes, count).above(0.5) is is_most


def test_an_interval_of_a_share_solves_wilsons_equation() -> None:
    interval = proportion(7, 20)
    for end in (interval.low, interval.high):
        # Each end is so many standard errors from the share that was seen.
        assert abs(0.35 - end) / math.sqrt(end * (1 - end) / 20) == pytest.approx(2.69, rel=0.002)


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
        abs((interval := estimate(rng.normal(3, 2, 10))).mean - 3) <= interval.half
        for _ in range(2000)
    )
    assert 0.988 < inside / 2000 < 0.997


@pytest.mark.parametrize("power", [0, 0.5, 1])
def test_exponent_of_a_power_law(power: float) -> None:
    sizes = np.array([8, 16, 32, 64])
    interval = exponent(sizes, 3 * sizes**power)
    assert interval.mean == pytest.approx(power)
    assert interval.half == pytest.approx(0, abs=1e-9)


def test_exponent_leaves_out_empty_queues() -> None:
    assert exponent([1, 2, 4, 8], [0, 2, 4, 8]).mean == pytest.approx(1)


@pytest.mark.parametrize(
    ("second", "correlation"),
    [([1, 2, 3, 4], 1), ([4, 3, 2, 1], -1), ([1, 3, 2, 4], 0.8), ([1, 1, 2, 2], 2 / math.sqrt(5))],
)
def test_rank_correlation(second: list[float], correlation: float) -> None:
    assert rank_correlation([10, 20, 30, 40], second) == pytest.approx(correlation)


def test_errors_of_independent_means_add_up_as_squares() -> None:
    interval = apart(Estimate(5.0, 3.0, 10), Estimate(2.0, 4.0, 8))
    assert (interval.mean, interval.half, interval.count) == (3.0, 5.0, 8)


@pytest.mark.parametrize(
    ("estimate", "above"),
    [
        (Estimate(0.6, 0.5, 10), True),
        (Estimate(-0.6, 0.5, 10), False),
        (Estimate(0.4, 0.5, 10), False),
        (Estimate(0.6, 0.7, 10), None),
        # Equal to the last bit, and a difference that is shown however small it is.
        (Estimate(0.0, 0.0, 10), False),
        (Estimate(0.01, 0.001, 10), True),
        # One seed shows nothing.
        (Estimate(5.0, math.nan, 1), None),
    ],
)
def test_what_clears_a_line_by_less_than_the_margin_has_not_cleared_it(
    estimate: Estimate, above: bool | None
) -> None:
    mirrored = Estimate(-estimate.mean, estimate.half, estimate.count)
    assert estimate.above(0, margin=1) is above
    assert mirrored.below(0, margin=1) is above


@pytest.mark.parametrize(
    ("differences", "turns_not"),
    [
        ([(3, 1), (0.2, 0.5)], True),
        ([(3, 1), (-3, 1)], False),
        ([(3, 1), (-0.5, 2)], None),
        ([(0.1, 0.5), (-0.1, 0.5)], True),
    ],
)
def test_a_difference_that_turns_by_less_than_the_margin_does_not_turn(
    differences: list[tuple[float, float]], turns_not: bool | None
) -> None:
    estimates = [Estimate(mean, half, 10) for mean, half in differences]
    assert one_direction(estimates, margin=1) is turns_not
