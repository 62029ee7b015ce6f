"""CCT as the network grows (section 7.1)."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from fattree.experiment import Scenario
from sim.report import schemes, style
from sim.report.claims import decide
from sim.report.figure import Data, Figure, Preset, Verdict, grid
from sim.report.schemes import BEST, mean_of, names, percent, where

ATA = "all-to-all"
PERMUTATION = "permutation"
ATA_K = {"quick": (4, 6), "default": (4, 6, 8, 10), "full": (4, 6, 8, 10, 12, 16)}
PERMUTATION_K = {
    "quick": (4, 8),
    "default": (4, 6, 8, 10, 12, 16, 20, 24),
    "full": (4, 6, 8, 10, 12, 16, 20, 24, 32),
}
# 65,536 hosts, once: 200 million packet-hops a run.
LARGEST = 64
# "Magnitude holds", by a factor of ours.
FACTOR = 2


def scenarios(preset: Preset) -> list[Scenario]:
    """Return both matrices on every size, fewer seeds of the largest."""
    # An all-to-all grows with the sixth power of k, a permutation with the third; and the more
    # ports there are, the less does the longest of their queues depend on the seed.
    ata = preset.pick(**ATA_K)
    permutation = preset.pick(**PERMUTATION_K)
    runs = []

    for k in ata:
        seeds = preset.seeds(2, 1 if k == max(ata) else 3, 3 if k > 8 else 10)
        runs += grid({"name": ATA, **schemes.ALL_TO_ALL}, BEST, seeds, fabric__k=(k,))

    for k in permutation:
        seeds = preset.seeds(3, 3 if k > 16 else 10, 5 if k > 24 else 10)
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
    style.lines(axes, frame, x="hosts", y="increase", policies=BEST, scale=100)
    style.powers_of_two(axes, sorted(frame["hosts"].unique()))
    axes.tick_params(axis="x", labelrotation=45)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("hosts")
    axes.set_ylabel("CCT increase over the bound (%)")
    axes.legend()

    return picture


def claims(data: Data) -> list[Verdict]:
    """Decide C10."""
    found = {panel: by_size(data.named(panel)) for panel in (ATA, PERMUTATION)}
    checks = {panel: (same_order(means), gaps_stay(means)) for panel, means in found.items()}
    return [
        Verdict(
            "C10",
            verdict=decide([right for pair in checks.values() for right in pair]),
            ours="; ".join(f"{panel}: {_row(means)}" for panel, means in found.items()),
            paper="relative order and magnitude of the differences hold",
            why="" if all(right for pair in checks.values() for right in pair) else _why(checks),
            evidence=(
                f"seeds: {schemes.seeds_of(data.named(PERMUTATION))} (permutation), "
                f"{schemes.seeds_of(data.named(ATA))} (all-to-all), fewer for the largest; Ofan "
                f"{percent(mean_of(_largest(data), 'ofan'), 2)} at {_largest(data)['hosts'][0]} "
                "hosts"
            ),
        )
    ]


def _largest(data: Data) -> pl.DataFrame:
    frame = data.named(PERMUTATION)
    return where(frame, hosts=frame["hosts"].max())


def by_size(frame: pl.DataFrame) -> dict[int, dict[str, float]]:
    """Return the mean increase of every scheme for each number of hosts."""
    sizes = sorted(frame["hosts"].unique())
    return {
        hosts: {policy: mean_of(where(frame, hosts=hosts), policy).mean for policy in BEST}
        for hosts in sizes
    }


def same_order(means: Mapping[int, Mapping[str, float]], margin: float = 0.005) -> bool:
    """Return whether schemes rank alike at every size, within half a point being equal."""
    # Every pair of sizes, not neighbours: an order may turn in small steps.
    return all(
        _agrees(first, second, margin) for first in means.values() for second in means.values()
    )


def _agrees(first: Mapping[str, float], second: Mapping[str, float], margin: float) -> bool:
    pairs = [(a, b) for a in first for b in first if a < b]
    return not any(
        (first[a] - first[b] > margin and second[b] - second[a] > margin)
        for a, b in pairs + [(b, a) for a, b in pairs]
    )


def gaps_stay(means: Mapping[int, Mapping[str, float]], factor: float = FACTOR) -> bool:
    """Return whether Ofan's gap to each other scheme stays within a factor 2 over the sizes."""
    for policy in BEST:
        gaps = [row[policy] - row["ofan"] for row in means.values()]
        # A gap that vanishes or turns has no ratio, and has not stayed.
        if policy != "ofan" and (min(gaps) <= 0 or max(gaps) / min(gaps) > factor):
            return False

    return True


def _row(means: Mapping[int, Mapping[str, float]]) -> str:
    return (
        ", ".join(
            f"{hosts} hosts {' / '.join(f'{100 * row[p]:.1f}' for p in BEST)} %"
            for hosts, row in means.items()
        )
        + f" ({names(BEST)})"
    )


def _why(checks: Mapping[str, Sequence[bool]]) -> str:
    parts = []
    for panel, (ordered, stays) in checks.items():
        if not ordered:
            parts.append(f"the order changes in the {panel}")

        if not stays:
            parts.append(
                f"in the {panel} the gap to Ofan moves by more than a factor 2: with few hosts "
                "the longest of few queues is short, and the maximum over all ports and flows "
                "grows with their number"
            )

    return schemes.sentence(parts)


FIGURE = Figure(
    name="network_size",
    title="Network size",
    paper="fig. network size, section 7.1",
    caption="CCT increase over the bound with 1 MB messages, from 16 hosts (k = 4) on.",
    scenarios=scenarios,
    draw=draw,
    claims=claims,
)
