"""Flows that a core link's failure silences (appendix F, "All-to-All with failure")."""

from typing import Any

import numpy as np
import polars as pl

from fattree.experiment import Scenario
from sim.report import style
from sim.report.claims import decide
from sim.report.figure import HOLDS, Data, Figure, Preset, Verdict, grid
from sim.report.measures.anchored import silenced_flows
from sim.report.schemes import KIB, MIB, seeds_of, where
from sim.report.statistics import Estimate, estimate

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
        else small + grid({**FAILURE, **DEFAULT}, (MAIN,), preset.seeds(1, 3, 10))
    )


def shares(frame: pl.DataFrame) -> dict[str, Estimate]:
    """Return the shares of silenced flows with Ofan, at full rate and with slower flows."""
    # A draw in which no flow is silenced has nothing that could be slowed down.
    rows = frame.filter((pl.col("policy") == MAIN) & pl.col("slowed").is_not_null())
    slowed = np.array(rows["slowed"].to_list())
    each = np.array(rows["slowed_each"].to_list())
    lost = np.array(where(frame, policy=MAIN)["share"].to_list())

    return {
        "full rate": estimate(lost[:, 0]),
        "one slower": estimate(slowed[:, 0]),
        "its pods: full rate": estimate(slowed[:, 3]),
        "its pods: one slower": estimate(slowed[:, 1]),
        "the slower flow": estimate(slowed[:, 2]),
        "one slower in each pair": estimate(each[:, 0]),
    }


def draw(data: Data) -> dict[str, Any]:
    """Draw the shares with Ofan, by size."""
    picture, axes = style.panel(4.4, 3.0)
    for shift, name, hatch in ((-0.2, "k4", ""), (0.2, "k8", "////")):
        rows = data.named(name)
        found = shares(rows) if len(rows) else {}
        for place, share in enumerate(found.values()):
            look = {
                "color": style.colour(MAIN),
                "hatch": hatch,
                "edgecolor": "#dddddd",
                "linewidth": 0.4,
            }

            text = f"k = {name[1:]}" if place == 0 else None
            axes.bar(
                place + shift,
                100 * share.mean,
                yerr=100 * share.whisker,
                width=0.38,
                label=text,
                **look,
            )

        if found:
            style.slanted(axes, list(found), degrees=30)

    axes.set_ylim(bottom=0)
    axes.set_ylabel("silenced flows (%)")
    axes.legend(loc="upper right")

    return {"": picture}


def claims(data: Data) -> list[Verdict]:
    """Decide C25 as it is written, and with the flows that a slower one can disturb."""
    found = {name: shares(data.named(name)) for name in ("k4", "k8") if len(data.named(name))}
    others = [policy for policy in SHOWN if policy != MAIN]
    silent = {policy: _share(where(data.named("k4"), policy=policy)) for policy in others}
    anchored = [parts["full rate"].mean > 0 for parts in found.values()]
    vanished = [parts["one slower"].mean == 0 for parts in found.values()]
    own = [released(parts) for parts in found.values()]
    text = "; ".join(
        f"k = {name[1:]}: {_listed(parts)} ({seeds_of(data.named(name))} seeds)"
        for name, parts in found.items()
    )

    text += "; other schemes at full rate: " + ", ".join(
        f"{style.label(policy)} {100 * value:.2f} %" for policy, value in silent.items()
    )
    # The appendix slows "some rate" and looks at its flow; the claim as it is written asks whether
    # nothing at all is silenced any more.
    literal = decide([all(anchored), all(vanished)])
    why = (
        "A slower flow shifts only the pointers that it shares, those between its pair of pods; "
        "other pairs stay anchored."
    )
    verdicts = [
        Verdict(
            "C25",
            verdict=literal,
            ours=text,
            paper="whole flows anchored to one core lose every packet",
            why="" if literal == HOLDS else why,
            evidence=EVIDENCE,
        )
    ]

    if literal != HOLDS:
        criterion = (
            "share > 0; the slowed flow loses less than all, and in its pair of pods the share "
            "falls"
        )
        changed = decide([all(anchored), all(own)])
        verdicts.append(
            Verdict("C25", changed, text, why=why, evidence=EVIDENCE, criterion=criterion)
        )

    return verdicts


EVIDENCE = "the bars: one slower flow in each pair of pods takes the share down everywhere"


def released(parts: dict[str, Estimate]) -> bool:
    """Return whether the slower flow gets through, and its pods have fewer silenced flows."""
    before = parts["its pods: full rate"]
    after = parts["its pods: one slower"]
    return parts["the slower flow"].mean == 0 and after.mean < before.mean


def _share(frame: pl.DataFrame) -> float:
    return float(np.mean([row[0] for row in frame["share"].to_list()]))


def _listed(parts: dict[str, Estimate]) -> str:
    return ", ".join(f"{name} {100 * share.mean:.2f} %" for name, share in parts.items())


FIGURE = Figure(
    name="anchored",
    title="All-to-all with a sudden failure",
    paper="appendix F",
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
