"""Number of seeds of a verdict: the one sequential rule of both reports.

A figure is looked at with its first seeds. A claim is decided if its interval decides it; for each
other claim the runs that it compares get as many seeds again, and all is looked at anew, LOOKS
times at most. With enough looks at 95 % intervals, some interval misses: so the intervals of all
looks together hold with 95 %, each with 1 - 0.05 / LOOKS (Bonferroni over the looks). A verdict is
read off such an interval, hence it is wrong in at most 5 % of cases, whichever look it is of.

No number of seeds would separate two equal values. So every claim has a margin, set before its
runs: as soon as an interval shows that a value misses its line by less than the margin, or is past
it, the claim has not cleared it ("no difference above 1 point"). An interval narrower than the
margin decides always.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from fattree.experiment.model import Scenario
from sim.sweeps.estimates import ERROR, LEVEL, LOOKS, MOST_DEGREES, probability, quantile

# The rule's numbers are those of every comparison over seeds, also of `ofan choose`.
__all__ = [
    "ERROR",
    "LEVEL",
    "LOOKS",
    "MOST_DEGREES",
    "Needs",
    "more_seeds",
    "probability",
    "quantile",
]

Needs = Callable[[Scenario], bool]


def more_seeds(
    scenarios: Sequence[Scenario], first: Sequence[Scenario], needs: Sequence[Needs]
) -> list[Scenario]:
    """Return a figure's scenarios with twice the seeds of all that an undecided claim needs.

    `first` are those of the first look. Settings that have had all their looks stay as they are.
    """
    seeds = _seeds(scenarios)
    limits = {
        setting: len(first_seeds) << (LOOKS - 1) for setting, first_seeds in _seeds(first).items()
    }
    one_of = {_setting(scenario): scenario for scenario in scenarios}
    settings = [
        setting
        for setting, scenario in one_of.items()
        if any(needs_setting(scenario) for needs_setting in needs)
        and 2 * len(seeds[setting]) <= limits[setting]
    ]

    # Seeds outside settings, as in `grid`: an interrupted look has whole seeds.
    added = [
        (seeds[setting][-1] + number, setting)
        for setting in settings
        for number in range(1, len(seeds[setting]) + 1)
    ]
    order = {setting: index for index, setting in enumerate(settings)}
    return [
        *scenarios,
        *(
            one_of[setting].model_copy(update={"seed": seed})
            for seed, setting in sorted(
                added, key=lambda seed_setting: (seed_setting[0], order[seed_setting[1]])
            )
        ),
    ]


def _seeds(scenarios: Sequence[Scenario]) -> Mapping[str, list[int]]:
    """Return the seeds of every setting, in order."""
    by_setting = defaultdict[str, list[int]](list)
    for scenario in scenarios:
        by_setting[_setting(scenario)].append(scenario.seed)

    return {setting: sorted(seeds) for setting, seeds in by_setting.items()}


def _setting(scenario: Scenario) -> str:
    """Return all of a scenario but its seed."""
    return scenario.model_copy(update={"seed": 0}).model_dump_json()
