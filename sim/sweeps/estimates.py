"""Means with intervals over seeds, by the sequential rule that reports and advice share.

A comparison starts with its first seeds. Where its interval decides, it is decided; otherwise the
seeds are doubled and the interval is computed again, LOOKS times at most. Among many looks at 95 %
intervals some would miss. So the intervals of all looks together hold with 95 %, each with
1 - 0.05 / LOOKS (Bonferroni over the looks).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import atan, cos, isnan, pi, sin, sqrt

import numpy as np
from numpy.typing import ArrayLike

# From 10 seeds to 640, or from 20 to 1,280.
LOOKS = 7
# Of all looks at one comparison together.
ERROR = 0.05
LEVEL = 1 - ERROR / LOOKS
# Beyond, Student's t is taken as with so many: wider by less than a thousandth.
MOST_DEGREES = 2000


@cache
def quantile(degrees: int, level: float = LEVEL) -> float:
    """Return the t inside of which Student's t lies, on either side of 0, with this probability."""
    # Bisection: the probability rises with t. 100 halvings leave less than a float can tell.
    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        if probability(middle, min(degrees, MOST_DEGREES)) < level:
            low = middle
        else:
            high = middle

    return high


def probability(t: float, degrees: int) -> float:
    """Return how likely Student's t lies between -t and t (Abramowitz and Stegun, 26.7.3 and 4)."""
    angle = atan(t / sqrt(degrees))
    is_odd = degrees % 2
    term = cos(angle) if is_odd else 1.0
    total = 0.0
    for power in range(is_odd, degrees - 1, 2):
        total += term
        term *= cos(angle) ** 2 * (power + 1) / (power + 2)

    return 2 / pi * (angle + sin(angle) * total) if is_odd else sin(angle) * total


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
        # With a margin the line itself is not enough: an equal value is not below.
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


def every(checks: Iterable[bool | None]) -> bool | None:
    """Return whether all of several checks hold, None where that is not decided."""
    results = list(checks)
    if False in results:
        return False

    return None if None in results else True


def estimate(values: ArrayLike) -> Estimate:
    """Return the mean with its interval (Student's t)."""
    samples = np.asarray(values, dtype=float)
    if len(samples) < 2:
        return Estimate(
            float(samples.mean()) if len(samples) else float("nan"), float("nan"), len(samples)
        )

    # The mean is estimated too, so both the variance and the quantile have one degree less.
    half = quantile(len(samples) - 1) * float(samples.std(ddof=1)) / sqrt(len(samples))
    return Estimate(float(samples.mean()), half, len(samples))


def paired(first: ArrayLike, second: ArrayLike) -> Estimate:
    """Return the mean of first - second with its interval.

    Both are in the order of the same seeds.
    """
    # One seed gives every scheme the same matrix and failures, so that their effect cancels. A
    # scheme may have more seeds for another claim.
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    both = min(len(a), len(b))
    return estimate(a[:both] - b[:both])
