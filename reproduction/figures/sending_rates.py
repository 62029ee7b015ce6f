"""The rate that hosts are given with failures, beside the best that routing allows (appendix A)."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import polars as pl

from fattree.demand import traffic
from fattree.experiment.model import Scenario
from fattree.routes.failures import timeline
from fattree.routes.rates import rho_max
from fattree.routes.wecmp import LinkState
from reproduction.report import schemes, style
from reproduction.report.figure import Data, Figure, grid
from reproduction.report.measures.concurrent_flow import GAP, rho_opt
from reproduction.report.schemes import FAILED_LINKS
from reproduction.report.statistics import Estimate, estimate

RATES = (FAILED_LINKS, 4 * FAILED_LINKS)


class Rates(NamedTuple):
    """Shares of line rate: with even splits, and at least and at most with the best splits."""

    even: float
    best_low: float
    best_high: float


@cache
def rates(failure_rate: float, seed: int) -> Rates:
    """Return both rates of a permutation under one draw of failures."""
    base = {**schemes.PERMUTATION, "failures__rate": failure_rate}
    (scenario,) = grid(base, ("ofan",), (seed,))
    return rates_of(scenario)


def rates_of(scenario: Scenario) -> Rates:
    """Return both rates of a scenario's flows over the links that are up at its start."""
    flows = traffic.flows(scenario)
    down = timeline(scenario, flows).down_at_start
    links = LinkState.without(scenario.tree, frozenset(down))
    even = rho_max(scenario.tree, links, flows)
    return Rates(float(even), *rho_opt(scenario.tree, links, flows))


def drawn(failure_rate: float, seeds: Sequence[int]) -> dict[str, Estimate]:
    """Return the mean rates, and the mean of the best rate over the even rate, over draws."""
    samples = [rates(failure_rate, seed) for seed in seeds]
    return {
        "ρmax": estimate([sample.even for sample in samples]),
        "ρopt": estimate([sample.best_low for sample in samples]),
        "ρopt / ρmax": estimate([sample.best_low / sample.even for sample in samples]),
    }


def draw(data: Data) -> dict[str, Any]:
    """Draw both rates of every draw: even splits across, the best splits up."""
    picture, axes = style.panel(3.2, 3.0)
    for rate, marker in zip(RATES, "ox", strict=True):
        samples = [rates(rate, seed) for seed in data.preset.seeds()]
        axes.plot(
            [sample.even for sample in samples],
            [sample.best_low for sample in samples],
            marker,
            color=style.BOUND,
            markersize=5,
            fillstyle="none",
            label=f"{100 * rate:g} % of the links failed",
        )

    axes.plot([0.4, 1], [0.4, 1], color="#999999", linewidth=0.8, label="equal")
    axes.set_xlabel("ρmax: even splits")
    axes.set_ylabel("ρopt: the best splits")
    style.legend_above(picture, axes, columns=2)
    return {"": picture}


def table(data: Data) -> pl.DataFrame:
    """Return the mean of both rates for each failure rate."""
    seeds = data.preset.seeds()
    return pl.DataFrame(
        [
            {
                "failed links": f"{100 * rate:g} %",
                **{name: f"{value:.3f}" for name, value in drawn(rate, seeds).items()},
                "draws": len(seeds),
            }
            for rate in RATES
        ]
    )


FIGURE = Figure(
    name="sending_rates",
    title="Sending rates with failures",
    paper="Appendix A",
    caption=(
        "Shares of line rate at which a permutation on 128 hosts overloads no link: ρmax, which "
        "hosts are given, with flows split evenly over their paths, and ρopt with any splits over "
        "the shortest paths that are left: a maximum concurrent flow, shown by its lower bound, "
        f"which is within {100 * GAP:g} % of an upper one."
    ),
    draw=draw,
    table=table,
)
