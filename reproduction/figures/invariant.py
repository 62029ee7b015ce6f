"""The load-balancing invariant: equal load on all southbound links to a switch (appendix F)."""

from typing import Any

import numpy as np
import polars as pl

from fattree.experiment.model import Scenario
from reproduction.report import style
from reproduction.report.claims import decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid
from reproduction.report.measures.balance import link_spreads
from reproduction.report.schemes import INTER_POD, seeds_of, where
from reproduction.report.statistics import estimate

MAIN = "ofan"
# Rotations, and the models of table 3, which do not look at the destination, beside them.
SHOWN = ("simple_rr", "jsq", "rsq", "host_dr", MAIN)
# 1,024 packets a flow: enough that a packet more or less is not an imbalance.
MESSAGE_BYTES = 4 << 20
# A pointer that turns has visited no port more than once more than another.
ROUNDING = 1
LAYERS = ("to aggregation switches (C>A)", "to edge switches (A>E)")


def scenarios(preset: Preset) -> list[Scenario]:
    """Return long inter-pod permutations; each source edge also runs alone."""
    return grid(
        {**INTER_POD, "collective__message_bytes": MESSAGE_BYTES}, SHOWN, preset.seeds(2, 5, 10)
    )


def worst(frame: pl.DataFrame, policy: str, column: str) -> tuple[float, float]:
    """Return the largest spread in packets over all seeds, C>A and A>E."""
    # An invariant holds always: the worst run decides, not the mean.
    aggs, edges = np.array(where(frame, policy=policy)[column].to_list()).max(axis=0)
    return float(aggs), float(edges)


def draw(data: Data) -> dict[str, Any]:
    """Draw the relative spread of every scheme in both layers, all sources together."""
    picture, row = style.panel(3.1, 2.7, columns=2, has_one_y=True)
    highest = 0.0
    for index, (axes, name) in enumerate(zip(row, LAYERS, strict=True)):
        shares = {
            policy: estimate(
                [spread[index] / load[index] for spread, load in _both(data.frame, policy)]
            )
            for policy in SHOWN
        }

        style.bars(axes, shares, scale=100)
        highest = max(highest, *(share.mean + share.whisker for share in shares.values()))
        axes.set_title(name, fontsize=8.5)

    # Percent, with room for the numbers above the bars.
    row[0].set_ylim(0, 125 * highest)
    row[0].set_ylabel("most − least loaded link to a switch\n(% of the mean load)")
    return {"": picture}


def _both(frame: pl.DataFrame, policy: str) -> list[tuple[list[float], list[float]]]:
    rows = where(frame, policy=policy)
    return list(zip(rows["together"].to_list(), rows["load"].to_list(), strict=True))


def claims(data: Data) -> list[Verdict]:
    """Decide C31."""
    alone, together, pointers = (
        worst(data.frame, MAIN, column) for column in ("alone", "together", "pointers")
    )
    pods = max(values[0] for values in where(data.frame, policy=MAIN)["pods"].to_list())
    checks = [equal_rates(alone, together, pointers), pods <= ROUNDING]
    load = float(np.mean([load[0] for load in data.frame["load"].to_list()]))
    spreads = ", ".join(
        f"{style.label(policy)} {_pair(worst(data.frame, policy, 'together'))}" for policy in SHOWN
    )

    why = "A pointer's count differs from its share by more than one packet."

    return [
        Verdict(
            "C31",
            verdict=decide(checks),
            ours=(
                "Ofan, every source edge alone: links to one switch differ by at most "
                f"{_pair(alone)} packets (C>A, A>E) of about {load:,.0f}, every pod alone "
                f"{pods:.0f} (C>A); all together {_pair(together)}, pointers that feed a switch "
                f"{_pair(pointers)}; others together: {spreads} ({seeds_of(data.frame)} seeds)"
            ),
            seeds=seeds_of(data.frame),
            paper="the same rate on all southbound links",
            why="" if all(checks) else why,
            evidence="tests/parity/test_invariant.py counts the same at P4 switches, k = 4",
        )
    ]


def equal_rates(
    alone: tuple[float, float], together: tuple[float, float], pointers: tuple[float, float]
) -> bool:
    """Return whether spreads are rounding: a packet from one source, one per pointer from all."""
    return max(alone) <= ROUNDING and all(
        spread <= limit for spread, limit in zip(together, pointers, strict=True)
    )


def _pair(values: tuple[float, float]) -> str:
    return " and ".join(f"{value:.0f}" for value in values)


FIGURE = Figure(
    name="invariant",
    title="The load-balancing invariant",
    paper="Invariant 1, appendix F",
    caption=(
        "4 MB inter-pod permutations on 128 hosts: how much the data packets on the links down "
        "to one switch differ at the end of the run, the worst switch."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
    measure=link_spreads,
)
