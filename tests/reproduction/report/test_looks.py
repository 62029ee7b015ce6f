"""The sequential rule: its quantiles, who gets more seeds, and how often its verdicts are wrong.

The judge of the last knows nothing of the rule's code: it draws numbers with a known mean, asks
whatever `follow` asks for, and counts verdicts that contradict that mean.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from fattree.experiment.model import Scenario
from fattree.records.record import Record
from reproduction.report.claims import Claim, decide
from reproduction.report.figure import (
    FAILS,
    FEW,
    HOLDS,
    Data,
    Figure,
    Outcome,
    Preset,
    Verdict,
    grid,
    parts,
)
from reproduction.report.gather import Asked, follow, undecided
from reproduction.report.looks import LEVEL, LOOKS, more_seeds, probability, quantile
from reproduction.report.schemes import difference
from reproduction.report.statistics import estimate
from sim import run

MARGIN = 0.5
TABLE = {1: 12.706, 2: 4.303, 9: 2.262, 29: 2.045, 30: 2.042, 120: 1.980, 1000: 1.962}


@pytest.mark.parametrize(("degrees", "printed"), TABLE.items())
def test_quantiles_are_those_of_printed_tables(degrees: int, printed: float) -> None:
    assert quantile(degrees, 0.95) == pytest.approx(printed, abs=6e-4)


def test_students_t_is_what_is_drawn() -> None:
    rng = np.random.default_rng(1)
    drawn = np.abs(rng.standard_t(4, 200_000))
    assert (drawn < quantile(4)).mean() == pytest.approx(LEVEL, abs=0.001)
    assert probability(quantile(7, 0.6), 7) == pytest.approx(0.6)


def settings(seeds: Sequence[int], k: int = 4) -> list[Scenario]:
    return grid({"name": f"k {k}"}, ("jsq", "ofan"), seeds, fabric__k=(k,))


def test_who_needs_more_seeds_gets_as_many_again() -> None:
    first = [*settings(range(5, 8)), *settings(range(5, 8), 8)]
    asked = more_seeds(first, first, [parts("k 8")])
    assert asked[: len(first)] == first
    added = asked[len(first) :]
    assert [(entry.seed, entry.policy) for entry in added] == [
        (seed, policy) for seed in (8, 9, 10) for policy in ("jsq", "ofan")
    ]
    assert {entry.name for entry in added} == {"k_8"}


def test_there_are_so_many_looks_and_no_more() -> None:
    first = asked = settings(range(1, 4))
    for _ in range(LOOKS - 1):
        asked = more_seeds(asked, first, [lambda scenario: True])

    assert len({entry.seed for entry in asked}) == 3 * 2 ** (LOOKS - 1)
    assert more_seeds(asked, first, [lambda scenario: True]) == asked
    assert more_seeds(first, first, [lambda scenario: False]) == first


Draw = Callable[[np.random.Generator], float]
# Skewed and long-tailed as completion times are: all have mean 0 and variance 1.
DRAWS: dict[str, Draw] = {
    "normal": lambda rng: rng.normal(),
    "uniform": lambda rng: rng.uniform(-(3**0.5), 3**0.5),
    "skewed": lambda rng: (rng.gamma(4) - 4) / 2,
}


@pytest.fixture(scope="module")
def template() -> Record:
    return run(Scenario(fabric={"k": 2}, collective={"message_bytes": 4096})).record  # type: ignore[arg-type]


def scenarios(preset: Preset) -> list[Scenario]:
    return grid({"name": "drawn"}, ("jsq", "ofan"), preset.seeds())


def claims(data: Data) -> list[Verdict]:
    gap = difference(data.frame, "jsq", "ofan")
    return [Verdict("X", decide([gap.above(0, MARGIN)]), "", seeds=gap.count)]


FIGURE = Figure("drawn", "", "", "", scenarios, claims=claims)
TOLD = {"X": Claim("", "", "", margin=MARGIN)}


def outcome(mean: float, draw: Draw, template: Record, case: int) -> tuple[Outcome, int, int]:
    """Return the result for draws around a mean: verdict, look, and seeds."""
    rng = np.random.default_rng((case, 2026))
    values: dict[tuple[int, str], float] = {}

    def fetch(asked: Asked) -> dict[str, Data]:
        for scenario in asked["drawn"]:
            key = scenario.seed, scenario.policy
            if key not in values:
                values[key] = mean + draw(rng) if scenario.policy == "jsq" else 0.0

        records = tuple(
            template.model_copy(
                update={
                    "sending_increase": values[entry.seed, entry.policy],
                    "name": entry.name,
                    "seed": entry.seed,
                }
            )
            for entry in asked["drawn"]
        )
        return {"drawn": Data(Preset("default"), tuple(asked["drawn"]), records)}

    data, looks = follow([FIGURE], Preset("default"), TOLD, fetch)
    (verdict,) = claims(data["drawn"])
    assert undecided(FIGURE, data["drawn"], TOLD) == ([verdict] if verdict.verdict == FEW else [])
    return verdict.verdict, looks["X"][0], verdict.seeds or 0


def decided(mean: float, draw: Draw, case: int) -> bool | None:
    """Return the rule's answer to "above 0?", with as many seeds again until it answers."""
    rng = np.random.default_rng((case, 2026))
    values = [mean + draw(rng) for _ in range(10)]
    for _ in range(LOOKS):
        answer = estimate(values).above(0, MARGIN)
        if answer is not None:
            return answer

        values += [mean + draw(rng) for _ in values]

    return None


# 5 % of 1,000: the promise for both sides together. Skewed draws err on one side nearly alone.
CASES = 1000
MOST_WRONG = 50


@pytest.mark.parametrize("name", DRAWS)
def test_what_is_equal_is_seldom_told_apart_however_often_one_looks(name: str) -> None:
    # Above 0 is wrong; "no difference above the margin" is right, and more seeds are to be had.
    answers = [decided(0.0, DRAWS[name], case) for case in range(CASES)]
    assert None not in answers
    assert answers.count(True) <= MOST_WRONG


@pytest.mark.parametrize("name", DRAWS)
def test_what_differs_by_the_margin_is_seldom_called_equal(name: str) -> None:
    answers = [decided(MARGIN, DRAWS[name], case) for case in range(CASES)]
    assert None not in answers
    assert answers.count(False) <= MOST_WRONG


def test_looking_at_plain_intervals_again_and_again_errs_more_often() -> None:
    # So that the correction is worth something: 95 % intervals, stopped where the first excludes 0.
    wrong = 0
    for case in range(CASES):
        values = np.random.default_rng((case, 1)).normal(size=10 << (LOOKS - 1))
        counts = [10 << look for look in range(LOOKS)]
        wrong += any(
            abs(values[:n].mean()) > 1.96 * values[:n].std(ddof=1) / n**0.5 for n in counts
        )

    assert wrong > 150


@pytest.mark.parametrize(("mean", "verdict"), [(9.0, HOLDS), (0.45, HOLDS), (0.0, FAILS)])
def test_figures_are_followed_until_they_are_decided(
    mean: float, verdict: Outcome, template: Record
) -> None:
    result, look, seeds = outcome(mean, DRAWS["normal"], template, 3)
    assert result == verdict
    assert (look == 1) is (mean == 9)
    assert seeds == 10 * 2 ** (look - 1)
