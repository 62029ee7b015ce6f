"""CCT against the failure rate when routes have converged, G = 0 (section 5.2)."""

from itertools import combinations
from typing import Any

import polars as pl

from fattree.experiment.model import Scenario
from reproduction.report import schemes, style
from reproduction.report.claims import CLAIMS, decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid
from reproduction.report.schemes import PACKET, not_so, percent, where
from reproduction.report.statistics import Estimate, estimate, every, paired

RATES = (0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05)
# "Unchanged", by a margin of ours: points of the CCT.
CHANGE = 0.03
# A rise that counts, in points of the CCT per point of failure rate.
STEEP = 0.5
FREE = "over_free_bound"


def scenarios(preset: Preset) -> list[Scenario]:
    """Return the permutation with every failure rate."""
    return grid(schemes.PERMUTATION, PACKET, preset.seeds(3, 20, 20), failures__rate=RATES)


def normalised(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the CCT over the failure-free bound, minus 1."""
    # The paper normalises here by the best case without failures, elsewhere by the bound with ρmax.
    free = where(frame, failure_rate=0)["bound_ps"].min()
    return frame.with_columns((pl.col("sending_cct_ps") / free - 1).alias(FREE))


def draw(data: Data) -> dict[str, Any]:
    """Draw lines over the failure rate."""
    picture, axes = style.panel(4, 3)
    frame = normalised(data.frame).with_columns((100 * pl.col("failure_rate")).alias("percent"))
    style.lines(axes, frame, x="percent", y=FREE, policies=PACKET, scale=100)
    axes.set_xlabel("failed links (%)")
    axes.set_ylabel("CCT increase over the\nfailure-free bound (%)")
    style.from_zero(axes)
    axes.legend()

    return {"": picture}


def claims(data: Data) -> list[Verdict]:
    """Decide C07."""
    frame = normalised(data.frame)
    slopes = {policy: slope(where(frame, policy=policy)) for policy in PACKET}
    moved = changes(frame)
    widest = max(moved, key=lambda pair: abs(moved[pair].mean))
    slope_of_each = ", ".join(f"{style.label(p)} {value:.1f}" for p, value in slopes.items())
    checks = {
        "the CCT rises with the failure rate": every(
            value.above(0, STEEP) for value in slopes.values()
        ),
        "no pairwise gap changes by more than 3 points": every(map(unchanged, moved.values())),
    }
    gaps = ", ".join(
        f"{100 * rate:g} %: {percent(gap(where(frame, failure_rate=rate)))}" for rate in RATES
    )

    return [
        Verdict(
            "C07",
            verdict=decide(list(checks.values())),
            ours=(
                f"points of CCT per point of failure rate: {slope_of_each}; the pairwise gap that "
                f"moves most: {_place(*widest)} {percent(moved[widest])}; gap between the best "
                f"and the worst scheme: {gaps} ({schemes.seeds_of(frame)} seeds)"
            ),
            paper="CCT rises, gaps unchanged",
            why=not_so(checks),
            evidence="changes beyond 3 points, or whose interval reaches beyond: "
            + (
                "; ".join(
                    f"{_place(*pair)} {percent(value)}"
                    for pair, value in moved.items()
                    if not unchanged(value)
                )
                or "none"
            ),
            seeds=schemes.seeds_of(frame),
        )
    ]


def changes(frame: pl.DataFrame) -> dict[tuple[str, str, float], Estimate]:
    """Return by how much each pair's gap at each rate is above its gap without failures."""
    free = where(frame, failure_rate=0)
    return {
        (first, second, rate): paired(
            _gap_values(where(frame, failure_rate=rate), first, second),
            _gap_values(free, first, second),
        )
        for first, second in combinations(PACKET, 2)
        for rate in RATES[1:]
    }


def _gap_values(frame: pl.DataFrame, first: str, second: str) -> Any:
    return schemes.of_policy(frame, first, FREE) - schemes.of_policy(frame, second, FREE)


def unchanged(change: Estimate) -> bool | None:
    """Return whether a gap has not changed, None where the interval does not decide."""
    return change.within(-CHANGE, CHANGE, CLAIMS["C07"].margin)


def _place(first: str, second: str, rate: float) -> str:
    return f"{style.label(first)} - {style.label(second)} at {100 * rate:g} %"


def slope(frame: pl.DataFrame) -> Estimate:
    """Return the slope of the CCT over the failure rate, fitted for every seed."""
    # A line for each seed: seeds are drawn at random, and the interval is over seeds.
    fits = []
    for _, rows in frame.group_by("seed"):
        rates = rows["failure_rate"].to_numpy()
        values = rows[FREE].to_numpy()
        fits.append(
            float(
                ((rates - rates.mean()) * (values - values.mean())).sum()
                / ((rates - rates.mean()) ** 2).sum()
            )
        )

    return estimate(fits)


def gap(frame: pl.DataFrame) -> Estimate:
    """Return worst - best of the schemes' means, with the interval of their paired difference."""
    # Best and worst scheme at this rate, whichever: the sentence is about the spread of schemes.
    ranked = schemes.order(frame, PACKET, FREE)
    return schemes.difference(frame, ranked[-1], ranked[0], FREE)


FIGURE = Figure(
    name="failure_rate",
    title="Failure rate, routes converged (G = 0)",
    paper="Figure 5 (failure rate), section 5.2",
    caption=(
        "CCT of a 1 MB permutation against the share of failed links, G = 0, normalised to the "
        "bound without failures."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
)
