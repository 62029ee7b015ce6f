"""Max queues of Ofan and Host DR as the network grows (appendix F, "Scaling impact")."""

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from fattree.experiment.model import Scenario
from fattree.shape.topology import FatTree
from reproduction.report import style
from reproduction.report.claims import CLAIMS, decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid
from reproduction.report.schemes import INTER_POD, of_policy, seeds_of, where
from reproduction.report.statistics import Estimate, apart, estimate, every, rank_correlation

# The paper's figure has the second over the first.
PAIR = ("host_dr", "ofan")


def scenarios(preset: Preset) -> list[Scenario]:
    """Return 1 MB inter-pod permutations, 30 runs a size as in the paper."""
    sizes = preset.pick((4, 8), (4, 6, 8, 10, 12, 16), (4, 6, 8, 10, 12, 16, 20, 24, 32))
    return grid(INTER_POD, PAIR, preset.seeds(5, 30, 30), fabric__k=sizes)


def ratios(frame: pl.DataFrame, over: str, under: str) -> dict[int, Estimate]:
    """Return ratios of two schemes' max queues by the number of hosts, means over paired seeds."""
    sizes = sorted(frame["k"].unique())
    pairs = {
        k: [of_policy(where(frame, k=k), policy, "max_queue_packets") for policy in (over, under)]
        for k in sizes
    }

    return {FatTree(k).hosts: estimate(np.divide(*pair)) for k, pair in pairs.items()}


def draw(data: Data) -> dict[str, Any]:
    """Draw both ratios, and the max queues themselves."""
    picture, (ratio_axes, queue_axes) = style.panel(3.5, 3, columns=2)
    style.line(ratio_axes, "ofan", ratios(data.frame, "ofan", "host_dr"), text="Ofan / Host DR")
    style.line(ratio_axes, "host_dr", ratios(data.frame, "host_dr", "ofan"), text="Host DR / Ofan")
    ratio_axes.axhline(1, color="#777777", linewidth=0.7)
    ratio_axes.set_ylabel("ratio of max queues")
    ratio_axes.legend(loc="center right")
    style.lines(queue_axes, frame=data.frame, x="hosts", y="max_queue_packets", policies=PAIR)
    queue_axes.set_ylabel("max queue (packets)")
    queue_axes.set_ylim(bottom=0)
    queue_axes.legend(loc="upper left")

    for axes in (ratio_axes, queue_axes):
        style.powers_of_two(
            axes, [2**power for power in range(4, 14) if 2**power <= data.frame["hosts"].max()]
        )
        axes.set_xlabel("hosts")

    return {"": picture}


def claims(data: Data) -> list[Verdict]:
    """Decide C21: the advantage Host DR / Ofan rises with the size."""
    # The text has "the ratio increases, i.e. Ofan outperforms even more" below a picture of the
    # inverse: we take its conclusion as the claim and print both.
    gains = ratios(data.frame, "host_dr", "ofan")
    shares = ratios(data.frame, "ofan", "host_dr")
    trend = rank_correlation(list(gains), [gain.mean for gain in gains.values()])
    grown = grows(trend, gains[min(gains)], gains[max(gains)])
    why = "Ofan's own max queue grows with the largest of ever more ports as Host DR's does."

    # Printed, not judged: a ratio of maxima falls between neighbouring sizes now and then.
    steps = sum(later.mean > earlier.mean for earlier, later in pairwise(gains.values()))
    return [
        Verdict(
            "C21",
            verdict=decide([grown]),
            seeds=seeds_of(data.frame),
            ours=(
                f"Host DR / Ofan {_listed(gains)}; Ofan / Host DR {_listed(shares)}; rank "
                f"correlation of Host DR / Ofan with the size {trend:.2f}, {steps} of "
                f"{len(gains) - 1} steps rise ({seeds_of(data.frame)} seeds a size)"
            ),
            paper=(
                "the figure shows Ofan / Host DR and the text says that the ratio increases, "
                "i.e. Ofan outperforms even more"
            ),
            why="" if grown else why,
            evidence="" if grown else "the right panel: max queues of both schemes by size",
        )
    ]


def grows(trend: float, first: Estimate, last: Estimate) -> bool | None:
    """Return whether a ratio rises: by ranks, and from the smallest to the largest size."""
    return every([trend > 0.5, apart(last, first).above(0, CLAIMS["C21"].margin)])


def _listed(estimates: dict[int, Estimate]) -> str:
    return ", ".join(f"{ratio:.2f} ({hosts:,})" for hosts, ratio in estimates.items())


FIGURE = Figure(
    name="ratio",
    title="Ofan against Host DR as the network grows",
    paper="Figure 18 (ratio), appendix F",
    caption=(
        "1 MB inter-pod permutations, 30 runs a size: the ratio of max queues both ways round, "
        "and the max queues."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
)
