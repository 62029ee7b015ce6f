"""The cost of one core link at a quarter of its rate for every load balancer, in the simulator.

    python benchmarks/slow_link.py --chart docs/slow-link.png --update docs/faults.md

A permutation on k = 8. The CCT is shown beside that of the same seed with whole links: while routes
do not know of the slow link (G = infinity), and with plans that weigh it (G = 0).
"""

from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from fattree.experiment.model import Collective, Degraded, Fabric, Failures, Scenario
from fattree.policies import POLICIES
from fattree.texts.looks import GRID, SLATES
from sim.sweeps.sweeping import sweep

BEGIN = "<!-- begin: benchmarks/slow_link.py -->"
END = "<!-- end: benchmarks/slow_link.py -->"
# Where the picture ends.
MOST_PERCENT = 85
LINK, RATE, K = "agg0_0-core0_0", 0.25, 8
SLOW = Degraded(link=LINK, rate=RATE)
STATES = {
    "whole": Failures(),
    "before": Failures(degraded=(SLOW,), convergence_rtt=float("inf")),
    "planned": Failures(degraded=(SLOW,)),
}


@dataclass(frozen=True, slots=True)
class Cost:
    """The growth of a load balancer's CCTs, as shares by seed: before and with plans."""

    policy: str
    before: NDArray[np.float64]
    planned: NDArray[np.float64]


def scenarios(seeds: int, message_bytes: int) -> list[Scenario]:
    """Return all runs: load balancers, states, seeds."""
    return [
        Scenario(
            policy=policy,
            seed=seed,
            fabric=Fabric(k=K),
            collective=Collective(message_bytes=message_bytes),
            failures=failures,
        )
        for policy in POLICIES
        for failures in STATES.values()
        for seed in range(1, seeds + 1)
    ]


def costs(seeds: int, message_bytes: int) -> list[Cost]:
    """Run everything."""
    records = sweep(scenarios(seeds, message_bytes))
    ccts = np.array([record.cct_ps for record in records], dtype=float)
    ccts = ccts.reshape(len(POLICIES), len(STATES), seeds)
    longer = ccts[:, 1:] / ccts[:, :1] - 1
    return [Cost(policy, *of_policy) for policy, of_policy in zip(POLICIES, longer, strict=True)]


def percent(longer: NDArray[np.float64]) -> str:
    """Return the median of some shares, and their range."""
    return f"{np.median(longer):+.1%} ({longer.min():+.1%} to {longer.max():+.1%})"


def table(measurements: list[Cost]) -> str:
    """Return the costs as a table of a page."""
    rows = [
        f"| {POLICIES[cost.policy].label} | {percent(cost.before)} | {percent(cost.planned)} |"
        for cost in measurements
    ]
    head = "| load balancer | CCT, routes do not know | CCT, plans weigh it |\n|---|---|---|"
    return "\n".join([head, *rows])


def draw(measurements: list[Cost], path: Path, seeds: int) -> None:
    """Draw the costs: a bar for the median, a line from the least to the most."""
    from matplotlib.figure import Figure as Picture

    picture = Picture(figsize=(6.8, 4.6), layout="constrained")
    axes = picture.subplots()
    places = np.arange(len(measurements))
    for shift, name, colour in ((-0.2, "before", SLATES[4]), (0.2, "planned", SLATES[1])):
        shares = 100 * np.array([getattr(cost, name) for cost in measurements])
        middle = np.median(shares, axis=1)
        spread = [middle - shares.min(axis=1), shares.max(axis=1) - middle]
        label = {"before": "routes do not know (G = inf)", "planned": "plans weigh it (G = 0)"}
        axes.barh(places + shift, middle, 0.38, color=colour, label=label[name])
        axes.errorbar(middle, places + shift, xerr=spread, fmt="none", ecolor="black", lw=0.7)
        # A single seed with a flow that has met the link again and again would make all bars tiny.
        for height, largest in zip(places, shares.max(axis=1), strict=True):
            if largest > MOST_PERCENT:
                beyond = f"to {largest:.0f} %"
                axes.text(
                    MOST_PERCENT, height + 2.2 * shift, beyond, ha="right", va="center", size=7
                )

    axes.set_yticks(places, [POLICIES[cost.policy].label for cost in measurements])
    axes.invert_yaxis()
    axes.set_xlim(-25, MOST_PERCENT)
    axes.grid(axis="x", color=GRID)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(f"CCT beside that with whole links (%): median of {seeds} seeds, least to most")
    axes.legend(loc="lower right", fontsize=8)
    picture.savefig(path, dpi=150)


def update(page: Path, measurements: list[Cost]) -> None:
    """Write the table into its place on a page."""
    before, _, rest = page.read_text().partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{table(measurements)}\n{END}{rest.partition(END)[2]}")


@click.command()
@click.option("--seeds", default=10, show_default=True)
@click.option("--message-bytes", default=1 << 20, show_default=True)
@click.option("--chart", type=click.Path(path_type=Path), help="Draw a picture.")
@click.option("--update", "page", type=click.Path(path_type=Path), help="Write the table there.")
def main(seeds: int, message_bytes: int, chart: Path | None, page: Path | None) -> None:
    """Measure the cost of a slow core link."""
    measured = costs(seeds, message_bytes)
    click.echo(table(measured))
    if chart:
        draw(measured, chart, seeds)
    if page:
        update(page, measured)


if __name__ == "__main__":
    main()
