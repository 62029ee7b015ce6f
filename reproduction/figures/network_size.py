"""CCT as the network grows (section 8.1)."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import polars as pl

from fattree.experiment.model import Scenario
from reproduction.report import schemes, style
from reproduction.report.claims import CLAIMS, decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid, slug
from reproduction.report.looks import Needs
from reproduction.report.schemes import BEST, mean_of, names, not_so, percent, where
from reproduction.report.statistics import Estimate, every, one_direction, opposite

ATA = "all-to-all"
PERMUTATION = "permutation"
ATA_K = {"quick": (4, 6), "default": (4, 6, 8), "full": (4, 6, 8, 10, 12, 16)}
PERMUTATION_K = {
    "quick": (4, 8),
    "default": (4, 6, 8, 10, 12, 16),
    "full": (4, 6, 8, 10, 12, 16, 20, 24, 32),
}
# 65,536 hosts, once: 200 million packet-hops a run.
LARGEST = 64
# "Magnitude holds", by a factor of ours.
FACTOR = 2
POINT = 0.01
# A ratio nearer to the factor than this is not within it.
NEAR = 0.25


Gaps = Mapping[tuple[str, str], Mapping[int, Estimate]]


def scenarios(preset: Preset) -> list[Scenario]:
    """Return both matrices on every size, fewer seeds of the largest."""
    # An all-to-all grows with the sixth power of k, a permutation with the third; and the more
    # ports there are, the less does the longest of their queues depend on the seed.
    ata = preset.pick(**ATA_K)
    permutation = preset.pick(**PERMUTATION_K)
    runs = []

    for k in ata:
        seeds = preset.seeds(2, 10, 3 if k > 10 else 10)
        runs += grid({"name": ATA, **schemes.ALL_TO_ALL}, BEST, seeds, fabric__k=(k,))

    for k in permutation:
        seeds = preset.seeds(3, 10, 10)
        runs += grid({"name": PERMUTATION, **schemes.PERMUTATION}, BEST, seeds, fabric__k=(k,))

    if preset.level != "quick":
        runs += grid(
            {"name": PERMUTATION, **schemes.PERMUTATION},
            BEST,
            preset.seeds(1, 1, 2),
            fabric__k=(LARGEST,),
        )

    return runs


def draw(data: Data) -> dict[str, Any]:
    """Draw lines over the number of hosts, one panel a matrix."""
    return {panel: _lines(rows) for panel, rows in data.parts(ATA, PERMUTATION).items()}


def _lines(frame: pl.DataFrame) -> Any:
    picture, axes = style.panel()
    style.lines(axes, frame, x="hosts", y="sending_increase", policies=BEST, scale=100)
    style.powers_of_two(axes, sorted(frame["hosts"].unique()))
    axes.tick_params(axis="x", labelrotation=45)
    style.from_zero(axes)
    axes.set_xlabel("hosts")
    axes.set_ylabel(style.INCREASE)
    axes.legend()

    return picture


def claims(data: Data) -> list[Verdict]:
    """Decide C10."""
    frames = {panel: data.named(panel) for panel in (ATA, PERMUTATION)}
    gaps = {panel: pair_gaps(frame) for panel, frame in frames.items()}
    checks = {
        f"no pair turns in the {panel}": same_direction(panel_gaps)
        for panel, panel_gaps in gaps.items()
    }
    checks |= {
        f"gaps above 1 point stay within a factor 2 in the {panel}": gaps_stay(panel_gaps)
        for panel, panel_gaps in gaps.items()
    }

    return [
        Verdict(
            "C10",
            verdict=decide(list(checks.values())),
            ours="; ".join(f"{panel}: {_row(by_size(frame))}" for panel, frame in frames.items()),
            paper="relative order and magnitude of the differences hold",
            why=not_so(checks, WHY),
            evidence=(
                f"{_moving(gaps[PERMUTATION])}; Ofan {percent(mean_of(_largest(data), 'ofan'), 2)} "
                f"at {_largest(data)['hosts'][0]} hosts (fewer seeds)"
            ),
            seeds=min(_fewest(frame) for frame in frames.values()),
            needs=_undecided(gaps),
        )
    ]


def _undecided(gaps: Mapping[str, Gaps]) -> Needs:
    """Return the predicate for sizes of both matrices at which a pair or a gap is not decided."""
    undecided = {
        (slug(panel), hosts)
        for panel, panel_gaps in gaps.items()
        for pair, sizes in panel_gaps.items()
        for hosts in _unsure(pair, sizes)
    }
    return lambda scenario: (scenario.name, scenario.tree.hosts) in undecided


def _unsure(pair: tuple[str, str], sizes: Mapping[int, Estimate]) -> list[int]:
    turning = one_direction(sizes.values(), CLAIMS["C10"].margin) is None
    open_ = [
        hosts
        for hosts, gap in sizes.items()
        if turning and not gap.differs and not gap.alike(CLAIMS["C10"].margin)
    ]
    if gaps_stay({pair: sizes}) is None:
        # Each that may be above a point; the widest and the narrowest alone would change from look
        # to look where all are alike.
        open_ += [hosts for hosts, gap in sizes.items() if abs_(gap).high >= POINT]

    return open_


WHY = (
    "With few hosts the longest of few queues is short, and the maximum over all ports and flows "
    "grows with their number."
)


def _largest(data: Data) -> pl.DataFrame:
    frame = data.named(PERMUTATION)
    return where(frame, hosts=frame["hosts"].max())


def _fewest(frame: pl.DataFrame) -> int:
    """Return the fewest seeds of a size that is judged."""
    return min(schemes.seeds_of(rows) for _, rows in judged(frame).group_by("hosts"))


def judged(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the sizes with more than one seed: one alone has no interval."""
    return frame.filter(pl.col("seed").n_unique().over("hosts") > 1)


def pair_gaps(frame: pl.DataFrame) -> dict[tuple[str, str], dict[int, Estimate]]:
    """Return the paired difference of every two schemes at every size that is judged."""
    rows = judged(frame)
    return {
        pair: {
            hosts: schemes.difference(where(rows, hosts=hosts), *pair)
            for hosts in sorted(rows["hosts"].unique())
        }
        for pair in combinations(BEST, 2)
    }


def same_direction(gaps: Gaps) -> bool | None:
    """Return whether no pair that differs one way at a size differs the other way at another.

    None where that is not decided; turning by less than the margin is none.
    """
    return every(one_direction(sizes.values(), CLAIMS["C10"].margin) for sizes in gaps.values())


def gaps_stay(gaps: Gaps, factor: float = FACTOR) -> bool | None:
    """Return whether the gaps that are above a point somewhere stay within a factor."""
    return every(_stays([abs_(gap) for gap in sizes.values()], factor) for sizes in gaps.values())


def abs_(estimate: Estimate) -> Estimate:
    """Return the estimate of a gap's size."""
    return Estimate(abs(estimate.mean), estimate.half, estimate.count)


def _stays(sizes: Sequence[Estimate], factor: float) -> bool | None:
    widest = max(sizes, key=lambda estimate: estimate.mean)
    narrowest = min(sizes, key=lambda estimate: estimate.mean)
    if widest.high < POINT or widest.high <= factor * narrowest.low:
        return True

    # An interval that the line of a point goes through leaves open whether the gap counts.
    is_wide = widest.above(POINT, POINT / 10)
    is_apart = widest.low > (factor - NEAR) * max(narrowest.high, 0)
    return opposite(every([is_wide, is_apart or None]))


def by_size(frame: pl.DataFrame) -> dict[int, dict[str, float]]:
    """Return the mean increase of every scheme for each number of hosts."""
    sizes = sorted(frame["hosts"].unique())
    return {
        hosts: {policy: mean_of(where(frame, hosts=hosts), policy).mean for policy in BEST}
        for hosts in sizes
    }


def _moving(gaps: Gaps) -> str:
    return "gaps in the permutation: " + "; ".join(
        f"{names(pair).replace(', ', ' - ')} "
        + ", ".join(f"{percent(gap)} ({hosts})" for hosts, gap in sizes.items())
        for pair, sizes in gaps.items()
    )


def _row(means: Mapping[int, Mapping[str, float]]) -> str:
    return (
        ", ".join(
            f"{hosts} hosts {' / '.join(f'{100 * row[p]:.1f}' for p in BEST)} %"
            for hosts, row in means.items()
        )
        + f" ({names(BEST)})"
    )


FIGURE = Figure(
    name="network_size",
    title="Network size",
    paper="Figure 8 (network size), section 8.1",
    caption="CCT increase over the bound with 1 MB messages, from 16 hosts (k = 4) on.",
    scenarios=scenarios,
    draw=draw,
    claims=claims,
)
