"""CCT against the failure rate when routes have converged, G = 0 (section 4.2)."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from fattree.experiment import Scenario
from sim.report import schemes, style
from sim.report.claims import decide
from sim.report.figure import Data, Figure, Preset, Verdict, grid
from sim.report.schemes import PACKET, names, percent, where
from sim.report.statistics import Estimate, estimate, paired

RATES = (0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05)
# "Unchanged", by a margin of ours.
CHANGE = 0.20
FREE = "over_free_bound"


def scenarios(preset: Preset) -> list[Scenario]:
    """Return the permutation with every failure rate."""
    return grid(schemes.PERMUTATION, PACKET, preset.seeds(3, 20, 20), failures__rate=RATES)


def normalised(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the CCT over the failure-free bound, minus 1."""
    # The paper normalises here by the best case without failures, elsewhere by the bound with ρmax.
    free = where(frame, failure_rate=0)["bound_ps"].min()
    return frame.with_columns((pl.col("cct_ps") / free - 1).alias(FREE))


def draw(data: Data) -> dict[str, Any]:
    """Draw lines over the failure rate."""
    picture, axes = style.panel(4.2, 3)
    frame = normalised(data.frame).with_columns((100 * pl.col("failure_rate")).alias("percent"))
    style.lines(axes, frame, x="percent", y=FREE, policies=PACKET, scale=100)
    axes.set_xlabel("failed links (%)")
    axes.set_ylabel("CCT increase over the\nfailure-free bound (%)")
    axes.set_ylim(bottom=0)
    axes.legend()

    return {"": picture}


def claims(data: Data) -> list[Verdict]:
    """Decide C07."""
    frame = normalised(data.frame)
    slopes = {policy: slope(where(frame, policy=policy)) for policy in PACKET}
    gaps = {rate: gap(where(frame, failure_rate=rate)) for rate in RATES}
    slope_of_each = ", ".join(f"{style.label(p)} {found:.1f}" for p, found in slopes.items())
    gap_at_each = ", ".join(f"{100 * rate:g} %: {percent(found)}" for rate, found in gaps.items())
    rises = [found.low > 0 for found in slopes.values()]
    stays = unchanged(gaps)
    why = (
        "The gap is a few points beside a CCT that rises by tens, and moves by more than a "
        "fifth of itself. What moves it is Switch Pkt: without failures, at line rate, its "
        "order keeps in step with the senders' pace and it is the worst; below line rate it is "
        "not. The gaps of the others do not change."
    )

    return [
        Verdict(
            "C07",
            verdict=decide([all(rises), stays]),
            ours=(
                f"points of CCT per point of failure rate: {slope_of_each}; gap between the best "
                f"and the worst scheme: {gap_at_each} ({schemes.seeds_of(frame)} seeds)"
            ),
            paper="CCT rises, gaps unchanged",
            why="" if stays else why,
            evidence=pair_changes(frame),
        )
    ]


def slope(frame: pl.DataFrame) -> Estimate:
    """Return the slope of the CCT over the failure rate, fitted for every seed."""
    # A line for each seed: seeds are what is drawn at random, and what the interval is over.
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
    # Best and worst at this rate, whoever they are: the sentence is about the spread of schemes.
    ranked = schemes.order(frame, PACKET, FREE)
    return schemes.difference(frame, ranked[-1], ranked[0], FREE)


def unchanged(gaps: Mapping[float, Estimate]) -> bool:
    """Return whether every gap is within a fifth of the failure-free one."""
    return all(abs(found.mean - gaps[0].mean) <= CHANGE * gaps[0].mean for found in gaps.values())


def pair_changes(frame: pl.DataFrame) -> str:
    """Return how each scheme's paired gap to Switch Pkt AR changes up to the highest rate."""
    ends = [where(frame, failure_rate=rate) for rate in (0, max(RATES))]
    parts = []
    for policy in PACKET[:3]:
        change = paired(*(_gap_values(end, policy) for end in reversed(ends)))
        parts.append(f"{style.label(policy)} {percent(change)}")

    return (
        f"change of the gap to {names(('switch_pkt_ar',))} from 0 to {100 * max(RATES):g} %: "
        f"{', '.join(parts)}"
    )


def _gap_values(frame: pl.DataFrame, policy: str) -> Any:
    return schemes.of_policy(frame, policy, FREE) - schemes.of_policy(frame, "switch_pkt_ar", FREE)


FIGURE = Figure(
    name="failure_rate",
    title="Failure rate, routes converged (G = 0)",
    paper="fig. failure rate, section 4.2",
    caption=(
        "CCT of a 1 MB permutation against the share of failed links, G = 0, normalised to the "
        "bound without failures."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
)
