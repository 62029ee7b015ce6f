"""Parts of criteria: means with intervals, paired differences, exponents, ranks.

An interval is that of one look (`report.looks`): those of all looks together hold with 95 %.
"""

from collections.abc import Iterable, Sequence
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from sim.sweeps.estimates import (
    MOST_DEGREES,
    Estimate,
    estimate,
    every,
    paired,
    quantile,
)

__all__ = [
    "Estimate",
    "apart",
    "estimate",
    "every",
    "exponent",
    "one_direction",
    "opposite",
    "paired",
    "proportion",
    "rank_correlation",
]


def opposite(check: bool | None) -> bool | None:
    """Return whether a check does not hold, None where that is not decided."""
    return None if check is None else not check


def one_direction(differences: Iterable[Estimate], margin: float) -> bool | None:
    """Return whether a difference never turns: above 0 here and below it there.

    Turning by less than the margin, as far as intervals show, is none.
    """
    estimates = list(differences)
    if any(difference.low > 0 for difference in estimates) and any(
        difference.high < 0 for difference in estimates
    ):
        return False

    # Without an interval (one seed) nothing is shown.
    never_above = all(difference.high < margin for difference in estimates)
    never_below = all(difference.low > -margin for difference in estimates)
    return True if never_above or never_below else None


def proportion(successes: int, count: int) -> Estimate:
    """Return the share of successes with its interval (Wilson's), the middle of which is the mean.

    Student's t would give ten successes of ten an interval of no width.
    """
    squared = quantile(MOST_DEGREES) ** 2
    share = successes / count if count else float("nan")
    middle = (successes + squared / 2) / (count + squared)
    half = sqrt(squared * (count * share * (1 - share) + squared / 4)) / (count + squared)
    return Estimate(middle, half, count)


def apart(first: Estimate, second: Estimate) -> Estimate:
    """Return first - second, of runs that are no pairs."""
    # Errors of independent means add up as squares.
    half = sqrt(first.half**2 + second.half**2)
    return Estimate(first.mean - second.mean, half, min(first.count, second.count))


def exponent(sizes: ArrayLike, values: ArrayLike) -> Estimate:
    """Return b of value = a size^b, fitted to logarithms, with its interval.

    Values of 0 are left out.
    """
    x = np.asarray(sizes, dtype=float)
    y = np.asarray(values, dtype=float)
    kept = (x > 0) & (y > 0)

    # value = a size^b is a straight line of slope b in logarithms: least squares there.
    x = np.log(x[kept])
    y = np.log(y[kept])
    slope, intercept = np.polyfit(x, y, 1)
    residual = y - slope * x - intercept
    degrees = len(x) - 2  # two parameters are fitted, a and b

    if degrees < 1:
        return Estimate(float(slope), float("nan"), len(x))

    error = sqrt(float((residual**2).sum()) / degrees / float(((x - x.mean()) ** 2).sum()))
    return Estimate(float(slope), quantile(degrees) * error, len(x))


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's rank correlation; ties share their mean rank."""
    return float(np.corrcoef(_ranks(first), _ranks(second))[0, 1])


def _ranks(values: Sequence[float]) -> np.ndarray:
    numbers = np.asarray(values, dtype=float)
    # Every value ties with itself, hence the - 1: its rank, without others, is how many are below.
    below = (numbers[:, None] > numbers[None, :]).sum(axis=1)
    ties = (numbers[:, None] == numbers[None, :]).sum(axis=1)

    return np.asarray(below + (ties - 1) / 2)
