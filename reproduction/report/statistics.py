"""What criteria are made of: means with intervals, paired differences, exponents, ranks.

An interval is that of one look (`report.looks`): those of all looks together hold with 95 %.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan, sqrt

import numpy as np
from numpy.typing import ArrayLike

from reproduction.report.looks import MOST_DEGREES, quantile


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, half the width of its interval, and the number of values.

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

    def below(self, limit: float, margin: float = 0) -> bool | None:
        """Return whether the value is below a limit, None where the interval does not decide.

        It is not where it is shown to be above, or below by less than the margin.
        """
        # With a margin the line itself is not enough: what is equal is not below.
        if self.high < limit or (self.high == limit and not margin):
            return True

        return False if self.low > limit - margin else None

    def above(self, limit: float, margin: float = 0) -> bool | None:
        """Return whether the value is above a limit, as `below`."""
        if self.low > limit or (self.low == limit and not margin):
            return True

        return False if self.high < limit + margin else None

    def within(self, low: float, high: float, margin: float = 0) -> bool | None:
        """Return whether the value lies between limits, as `below`."""
        return every([self.above(low, margin), self.below(high, margin)])

    def alike(self, margin: float) -> bool:
        """Return whether the value is shown to be no further from 0 than a margin."""
        return -margin < self.low and self.high < margin

    def __format__(self, spec: str) -> str:
        half = "" if isnan(self.half) else f" ± {self.half:{spec or '.2f'}}"
        return f"{self.mean:{spec or '.2f'}}{half}"


def opposite(check: bool | None) -> bool | None:
    """Return whether a check does not hold, None where that is not decided."""
    return None if check is None else not check


def one_direction(differences: Iterable[Estimate], margin: float) -> bool | None:
    """Return whether a difference never turns: above 0 here and below it there.

    Turning by less than the margin, as far as intervals show, is none.
    """
    given = list(differences)
    if any(found.low > 0 for found in given) and any(found.high < 0 for found in given):
        return False

    # Without an interval (one seed) nothing is shown.
    never_above = all(found.high < margin for found in given)
    never_below = all(found.low > -margin for found in given)
    return True if never_above or never_below else None


def every(checks: Iterable[bool | None]) -> bool | None:
    """Return whether all of several checks hold, None where that is not decided."""
    given = list(checks)
    if False in given:
        return False

    return None if None in given else True


def estimate(values: ArrayLike) -> Estimate:
    """Return the mean with its interval (Student's t)."""
    given = np.asarray(values, dtype=float)
    if len(given) < 2:
        return Estimate(
            float(given.mean()) if len(given) else float("nan"), float("nan"), len(given)
        )

    # The mean is estimated too, so both the variance and the quantile have one degree less.
    half = quantile(len(given) - 1) * float(given.std(ddof=1)) / sqrt(len(given))
    return Estimate(float(given.mean()), half, len(given))


def proportion(successes: int, count: int) -> Estimate:
    """Return the share of successes with its interval (Wilson's), the middle of which is the mean.

    Student's t would give ten successes of ten an interval of no width.
    """
    squared = quantile(MOST_DEGREES) ** 2
    share = successes / count if count else float("nan")
    middle = (successes + squared / 2) / (count + squared)
    half = sqrt(squared * (count * share * (1 - share) + squared / 4)) / (count + squared)
    return Estimate(middle, half, count)


def paired(first: ArrayLike, second: ArrayLike) -> Estimate:
    """Return the mean of first - second with its interval.

    Both are in the order of the same seeds.
    """
    # One seed gives every scheme the same matrix and failures: what these do to both cancels. One
    # of them may have been given more seeds for another claim.
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    both = min(len(a), len(b))
    return estimate(a[:both] - b[:both])


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
    given = np.asarray(values, dtype=float)
    # Every value ties with itself, hence the - 1: its rank, without others, is how many are below.
    below = (given[:, None] > given[None, :]).sum(axis=1)
    ties = (given[:, None] == given[None, :]).sum(axis=1)

    return np.asarray(below + (ties - 1) / 2)
