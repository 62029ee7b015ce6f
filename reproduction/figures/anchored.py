"""Flows that a core link's failure silences (appendix F, "All-to-All with failure")."""

from typing import Any

import numpy as np
import polars as pl

from fattree.experiment.model import Scenario
from reproduction.report import style
from reproduction.report.claims import CLAIMS, decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid
from reproduction.report.measures.anchored import silenced_flows
from reproduction.report.schemes import KIB, MIB, not_so, percent, seeds_of, where
from reproduction.report.statistics import Estimate, estimate, every, paired

MAIN = "ofan"
# Beside Ofan: random spraying, which anchors nothing, and the rotation of appendix E at hosts.
SHOWN = ("rsq", "host_dr", MAIN)
FAILURE = {
    "collective__matrix": "all_to_all",
    "failures__events": ({"link": "agg0_0-core0_0", "down_ns": 50_000},),
}
# Both collectives outlast the failure at 50 us and the convergence 75 or 375 us after it: their
# bounds are 170 and 700 us.
SMALL = {
    "name": "k4",
    "fabric__k": 4,
    "collective__message_bytes": MIB,
    "failures__convergence_rtt": 12,
}
DEFAULT = {
    "name": "k8",
    "fabric__k": 8,
    "collective__message_bytes": 512 * KIB,
    "failures__convergence_rtt": 60,
}


def scenarios(preset: Preset) -> list[Scenario]:
    """Return all-to-alls in which a core link fails at 50 us, and routes follow after G."""
    small = grid({**FAILURE, **SMALL}, SHOWN, preset.seeds())
    return (
        small
        if preset.level == "quick"
        else small + grid({**FAILURE, **DEFAULT}, (MAIN,), preset.seeds(1, 10, 10))
    )


def shares(frame: pl.DataFrame) -> dict[str, Estimate]:
    """Return the shares of silenced flows with Ofan, at full rate and with slower flows."""
    # A draw in which no flow is silenced has nothing that could be slowed down.
    rows = frame.filter((pl.col("policy") == MAIN) & pl.col("slowed").is_not_null())
    slowed = np.array(rows["slowed"].to_list())
    slower_pairs = np.array(rows["slowed_each"].to_list())
    lost = np.array(where(frame, policy=MAIN)["share"].to_list())

    return {
        "full rate": estimate(lost[:, 0]),
        "one slower": estimate(slowed[:, 0]),
        "its pods: full rate": estimate(slowed[:, 3]),
        "its pods: one slower": estimate(slowed[:, 1]),
        "the slower flow": estimate(slowed[:, 2]),
        "one slower in each pair": estimate(slower_pairs[:, 0]),
    }


def draw(data: Data) -> dict[str, Any]:
    """Draw the shares with Ofan, by size."""
    picture, axes = style.panel(4.4, 3.0)
    for shift, name, hatch in ((-0.2, "k4", ""), (0.2, "k8", "////")):
        rows = data.named(name)
        cases = shares(rows) if len(rows) else {}
        for index, share in enumerate(cases.values()):
            look = {
                "color": style.colour(MAIN),
                "hatch": hatch,
                "edgecolor": "#dddddd",
                "linewidth": 0.4,
            }

            text = f"k = {name[1:]}" if index == 0 else None
            axes.bar(
                index + shift,
                100 * share.mean,
                yerr=100 * share.whisker,
                width=0.38,
                label=text,
                **look,
            )

        if cases:
            style.slanted(axes, list(cases), degrees=30)

    axes.set_ylim(bottom=0)
    axes.set_ylabel("silenced flows (%)")
    axes.legend(loc="upper right")

    return {"": picture}


def claims(data: Data) -> list[Verdict]:
    """Decide C25."""
    by_size = {name: shares(data.named(name)) for name in ("k4", "k8") if len(data.named(name))}
    other_schemes = [policy for policy in SHOWN if policy != MAIN]
    silent = {policy: _share(where(data.named("k4"), policy=policy)) for policy in other_schemes}
    fewer = {name: fewer_silenced(data.named(name)) for name in by_size}
    checks = {
        "flows are silenced in every draw at full rate": every(
            anchored(data.named(name)) for name in by_size
        ),
        "with one flow slowed fewer are": every(
            value.above(0, CLAIMS["C25"].margin) for value in fewer.values()
        ),
    }
    text = "; ".join(
        f"k = {name[1:]}: {_listed(parts)}, {percent(fewer[name], 2)} fewer with one slower "
        f"({seeds_of(data.named(name))} seeds)"
        for name, parts in by_size.items()
    )
    text += "; other schemes at full rate: " + ", ".join(
        f"{style.label(policy)} {100 * value:.2f} %" for policy, value in silent.items()
    )

    return [
        Verdict(
            "C25",
            verdict=decide(list(checks.values())),
            ours=text,
            paper="whole flows anchored to one core lose every packet",
            why=not_so(checks),
            evidence=EVIDENCE,
            seeds=min(seeds_of(data.named(name)) for name in by_size),
        )
    ]


EVIDENCE = (
    "a slower flow shifts only the pointers that it shares, those between its pair of pods, and "
    "other pairs stay anchored: one slower flow in each pair takes the share down everywhere (bars)"
)


def anchored(frame: pl.DataFrame) -> bool:
    """Return whether in every draw at least one flow loses everything with Ofan."""
    return all(row[1] >= 1 for row in where(frame, policy=MAIN)["share"].to_list())


def fewer_silenced(frame: pl.DataFrame) -> Estimate:
    """Return the share of all flows by which fewer are silenced when one flow is slower."""
    rows = where(frame, policy=MAIN).filter(pl.col("slowed").is_not_null())
    return paired(
        [row[0] for row in rows["share"].to_list()], [row[0] for row in rows["slowed"].to_list()]
    )


def _share(frame: pl.DataFrame) -> float:
    return float(np.mean([row[0] for row in frame["share"].to_list()]))


def _listed(parts: dict[str, Estimate]) -> str:
    return ", ".join(f"{name} {100 * share.mean:.2f} %" for name, share in parts.items())


FIGURE = Figure(
    name="anchored",
    title="All-to-all with a sudden failure",
    paper="Appendix F",
    caption=(
        "Ofan, all-to-all at full rate: flows that get nothing through between a core link's "
        "failure (and one RTT) and the convergence, of all flows and of those between the pods "
        "of the flow that is then paced 5 % slower."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
    measure=silenced_flows,
)
