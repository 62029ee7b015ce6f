"""What criteria are made of: means with 95 % intervals, paired differences, exponents, ranks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan, sqrt

import numpy as np
from numpy.typing import ArrayLike

# Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom; beyond, the normal's,
# which is at most 4 % too small there. Figures have 10 seeds as in the paper, few have over 31.
STUDENT_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
NORMAL = 1.960


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, half the width of its 95 % interval, and the number of values.

    The half width of one value is unknown (nan).
    """

    mean: float
    half: float
    count: int

    @property
    def low(self) -> float:
        """Return the lower end of the interval."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """Return the upper end of the interval."""
        return self.mean + self.half

    @property
    def differs(self) -> bool:
        """Return whether the interval excludes 0."""
        # Comparisons with nan are false, so one seed alone never differs from anything.
        return self.low > 0 or self.high < 0

    @property
    def whisker(self) -> float:
        """Return half the width to draw: none where it is unknown."""
        return 0 if isnan(self.half) else self.half

    def below(self, limit: float) -> bool | None:
        """Return whether the value is below a limit, None where the interval does not decide."""
        if self.high <= limit:
            return True

        return False if self.low > limit else None

    def above(self, limit: float) -> bool | None:
        """Return whether the value is above a limit, None where the interval does not decide."""
        if self.low >= limit:
            return True

        return False if self.high < limit else None

    def within(self, low: float, high: float) -> bool | None:
        """Return whether the value lies between limits, None where the interval does not decide."""
        return every([self.above(low), self.below(high)])

    def __format__(self, spec: str) -> str:
        half = "" if isnan(self.half) else f" ± {self.half:{spec or '.2f'}}"
        return f"{self.mean:{spec or '.2f'}}{half}"


def every(checks: Iterable[bool | None]) -> bool | None:
    """Return whether all of several checks hold, None where that is not decided."""
    given = list(checks)
    if False in given:
        return False

    return None if None in given else True


def student_t(degrees: int) -> float:
    """Return the two-sided 95 % quantile."""
    return STUDENT_T[degrees - 1] if degrees <= len(STUDENT_T) else NORMAL


def estimate(values: ArrayLike) -> Estimate:
    """Return the mean with its 95 % interval (Student's t)."""
    given = np.asarray(values, dtype=float)
    if len(given) < 2:
        return Estimate(float(given.mean()), float("nan"), len(given))

    # The mean is estimated too, so both the variance and the quantile have one degree less.
    half = student_t(len(given) - 1) * float(given.std(ddof=1)) / sqrt(len(given))
    return Estimate(float(given.mean()), half, len(given))


def paired(first: ArrayLike, second: ArrayLike) -> Estimate:
    """Return the mean of first - second with its interval.

    Both are in the order of the same seeds.
    """
    # One seed gives every scheme the same matrix and failures: what these do to both cancels.
    return estimate(np.asarray(first, dtype=float) - np.asarray(second, dtype=float))


def apart(first: Estimate, second: Estimate) -> Estimate:
    """Return first - second, of runs that are no pairs."""
    # Errors of independent means add up as squares.
    half = sqrt(first.half**2 + second.half**2)
    return Estimate(first.mean - second.mean, half, min(first.count, second.count))


def exponent(sizes: ArrayLike, values: ArrayLike) -> Estimate:
    """Return b of value = a size^b, fitted to logarithms, with its 95 % interval.

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
    return Estimate(float(slope), student_t(degrees) * error, len(x))


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's rank correlation; ties share their mean rank."""
    return float(np.corrcoef(_ranks(first), _ranks(second))[0, 1])


def _ranks(values: Sequence[float]) -> np.ndarray:
    given = np.asarray(values, dtype=float)
    # Every value ties with itself, hence the - 1: its rank, without others, is how many are below.
    below = (given[:, None] > given[None, :]).sum(axis=1)
    ties = (given[:, None] == given[None, :]).sum(axis=1)

    return np.asarray(below + (ties - 1) / 2)
