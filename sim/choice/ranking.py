"""The order of candidates by their worst condition, with a margin and intervals over seeds.

A candidate's time in a condition is the mean of its workloads' CCTs over the bound, in percent; of
each seed, so that two candidates are compared in pairs: a seed gives both the same traffic. A
candidate is ahead of another if its time in every condition is below the other's in the other's
worst condition. All of these must be shown, so several comparisons need no wider intervals (an
intersection of tests). Two are level if the difference of their worst conditions is shown to be
less than the margin.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from math import inf, isinf
from statistics import fmean

from sim.sweeps.estimates import Estimate, estimate, every, paired

# In points of the bound, unless the user sets another.
MARGIN = 2.0
# The order of so many rows must be decided.
DECIDED = 3
# After the first seed, a row that is more than so many times as far over the bound as the third,
# and more than so many points beyond it, gets no more seeds.
FAR_TIMES = 2.0
FAR_POINTS = 5.0

# By candidate and condition: the time of each seed, over the bound in percent.
Times = Mapping[str, Mapping[str, Sequence[float]]]


class Verdict(Enum):
    """Outcome of a comparison of a row with the next."""

    AHEAD = "ahead"
    LEVEL = "level"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Standing:
    """A candidate's place: its worst condition, its mean over all, and its lead over the next."""

    name: str
    worst: Estimate
    condition: str
    mean: float
    seeds: int
    lead: Estimate | None = None
    verdict: Verdict | None = None


def ranked(times: Times, weights: Mapping[str, float], margin: float) -> list[Standing]:
    """Return the candidates from the best worst condition to the worst."""
    weighed = {name: _weighed(by_condition, weights) for name, by_condition in times.items()}
    places = sorted(
        (_standing(name, by_condition, weights) for name, by_condition in weighed.items()),
        key=lambda earlier: (earlier.worst.mean, earlier.mean),
    )
    return [
        _beside(earlier, after, weighed, margin) for earlier, after in pairwise(places)
    ] + places[-1:]


def _weighed(
    samples: Mapping[str, Sequence[float]], weights: Mapping[str, float]
) -> dict[str, list[float]]:
    return {
        condition: [weights.get(condition, 1.0) * value for value in values]
        for condition, values in samples.items()
        if values and weights.get(condition, 1.0) > 0
    }


def _standing(
    name: str, samples: Mapping[str, Sequence[float]], weights: Mapping[str, float]
) -> Standing:
    condition = worst_of(samples)
    total = sum(weights.get(key, 1.0) for key in samples)
    return Standing(
        name,
        safe(samples[condition]),
        condition,
        sum(fmean(values) for values in samples.values()) / total,
        min(len(values) for values in samples.values()),
    )


def worst_of(samples: Mapping[str, Sequence[float]]) -> str:
    """Return the condition with the longest mean time."""
    return max(samples, key=lambda condition: fmean(samples[condition]))


def safe(values: Sequence[float]) -> Estimate:
    """Return the mean with its interval; a run that does not end makes it infinite."""
    return Estimate(inf, 0.0, len(values)) if any(map(isinf, values)) else estimate(values)


def _beside(earlier: Standing, after: Standing, weighed: Times, margin: float) -> Standing:
    return Standing(
        earlier.name,
        earlier.worst,
        earlier.condition,
        earlier.mean,
        earlier.seeds,
        difference(weighed[earlier.name], weighed[after.name], earlier.condition),
        compared(weighed[earlier.name], weighed[after.name], margin),
    )


def difference(
    first: Mapping[str, Sequence[float]], second: Mapping[str, Sequence[float]], condition: str
) -> Estimate:
    """Return the first's time in a condition less the second's in the second's worst, paired."""
    first_times, second_times = first[condition], second[worst_of(second)]
    if any(map(isinf, first_times)) or any(map(isinf, second_times)):
        ends = all(not isinf(value) for value in first_times)
        return Estimate(-inf if ends else 0.0, 0.0, min(len(first_times), len(second_times)))

    return paired(first_times, second_times)


def compared(
    first: Mapping[str, Sequence[float]], second: Mapping[str, Sequence[float]], margin: float
) -> Verdict:
    """Return whether the first is ahead of the second, level with it, or neither so far."""
    # The lead is shown to be less than the margin.
    if difference(first, second, worst_of(first)).low > -margin:
        return Verdict.LEVEL

    is_ahead = every(difference(first, second, condition).high < 0 or None for condition in first)
    return Verdict.AHEAD if is_ahead else Verdict.OPEN


def open_pairs(
    times: Times, weights: Mapping[str, float], margin: float, far: Iterable[str] = ()
) -> list[tuple[str, str]]:
    """Return the pairs that the order of the first three still needs.

    Each of the first three against all rows behind it, but those that are `far`.
    """
    left_out = set(far)
    places = [
        standing.name
        for standing in ranked(times, weights, margin)
        if standing.name not in left_out
    ]
    weighed = {name: _weighed(by_condition, weights) for name, by_condition in times.items()}
    pairs = [
        (first, second)
        for index, first in enumerate(places[:DECIDED])
        for second in places[index + 1 :]
    ]
    return [
        (first, second)
        for first, second in pairs
        if compared(weighed[first], weighed[second], margin) is Verdict.OPEN
    ]


def far(times: Times, weights: Mapping[str, float]) -> set[str]:
    """Return the candidates that are far behind the third after the first seed."""
    first = {
        name: {condition: values[:1] for condition, values in by_condition.items()}
        for name, by_condition in times.items()
    }
    places = ranked(first, weights, 0)
    if len(places) <= DECIDED:
        return set()

    third = places[DECIDED - 1].worst.mean
    limit = max(FAR_TIMES * third, third + FAR_POINTS)
    return {standing.name for standing in places[DECIDED:] if standing.worst.mean > limit}


def leaders(
    times: Times, weights: Mapping[str, float], margin: float, far: Iterable[str] = ()
) -> list[str]:
    """Return the first candidate, and those that it is not shown to be ahead of.

    Those that are `far` behind are not among them.
    """
    weighed = {name: _weighed(by_condition, weights) for name, by_condition in times.items()}
    first, *rest = (standing.name for standing in ranked(times, weights, margin))
    left_out = set(far)
    return [first] + [
        name
        for name in rest
        if name not in left_out
        and compared(weighed[first], weighed[name], margin) is not Verdict.AHEAD
    ]
