"""How many seeds a verdict gets: the one sequential rule of both reports.

A figure is looked at with its first seeds. A claim whose interval decides it is decided; for each
other one the runs that it compares get as many seeds again, and all is looked at anew, LOOKS times
at most. Whoever looks often enough at 95 % intervals sees one of them miss: so the intervals of
all looks together hold with 95 %, each with 1 - 0.05 / LOOKS (Bonferroni over the looks). Whatever
a verdict says is read off such an interval, hence it is wrong in at most one of twenty cases,
whichever look it is of.

Two things that are equal would never be told apart. So every claim has a margin, set before its
runs: as soon as an interval shows that something misses its line by less than the margin, or is
past it, the claim has not cleared it ("no difference above 1 point"). An interval narrower than the
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

    `first` are those of the first look. What has had all its looks stays as it is.
    """
    seeds = _seeds(scenarios)
    most = {setting: len(found) << (LOOKS - 1) for setting, found in _seeds(first).items()}
    one_of = {_setting(scenario): scenario for scenario in scenarios}
    wanted = [
        setting
        for setting, scenario in one_of.items()
        if any(each(scenario) for each in needs) and 2 * len(seeds[setting]) <= most[setting]
    ]

    # Seeds outside settings, as in `grid`: an interrupted look has whole seeds.
    added = [
        (seeds[setting][-1] + number, setting)
        for setting in wanted
        for number in range(1, len(seeds[setting]) + 1)
    ]
    order = {setting: place for place, setting in enumerate(wanted)}
    return [
        *scenarios,
        *(
            one_of[setting].model_copy(update={"seed": seed})
            for seed, setting in sorted(added, key=lambda each: (each[0], order[each[1]]))
        ),
    ]


def _seeds(scenarios: Sequence[Scenario]) -> Mapping[str, list[int]]:
    """Return the seeds of every setting, in order."""
    found = defaultdict[str, list[int]](list)
    for scenario in scenarios:
        found[_setting(scenario)].append(scenario.seed)

    return {setting: sorted(seeds) for setting, seeds in found.items()}


def _setting(scenario: Scenario) -> str:
    """Return all of a scenario but its seed."""
    return scenario.model_copy(update={"seed": 0}).model_dump_json()
