"""Effect of an incast's pauses on a flow that only passes by (docs/lossless.md)."""

from collections.abc import Iterator, Mapping
from statistics import fmean, median
from typing import Any

import polars as pl

from fattree.experiment.model import Scenario
from fattree.records.record import times_of_jobs
from fattree.shape.topology import FatTree
from reproduction.report import style
from reproduction.report.claims import decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid
from reproduction.report.looks import Needs
from reproduction.report.schemes import MIB, not_so, where
from reproduction.report.statements import STATEMENTS
from reproduction.report.statistics import every, proportion

ONE_PATH = "flow"
SPRAYING = ("host_pkt", "switch_pkt_ar", "host_dr", "ofan")
SHOWN = (ONE_PATH, *SPRAYING)
SENDERS = 7
GBPS = 400
VICTIM_BYTES = 2 * MIB
INCAST, VICTIM = "incast", "victim"
# A victim below half of the line rate is slowed down: alone it has 341 of 400 Gb/s.
SLOW_GBPS = GBPS / 2
MOST, SOME = 0.75, 0.25


def scenarios(preset: Preset) -> list[Scenario]:
    """Return an incast under PFC, and a flow to another edge of the receiver's pod."""
    return grid(
        {
            "name": INCAST,
            "fabric__k": 8,
            "fabric__rate_gbps": GBPS,
            "fabric__flow_control": "pfc",
            "fabric__queue_bytes": 200_000,
            # Nothing is lost, and nothing that is late is sent again.
            "transport__recovery": "sack",
            "transport__sack_threshold": 1000,
            "transport__timer_floor_rtt": 1000,
            # No NIC's receiver asks its senders to slow down.
            "transport__receiver_share": False,
            "jobs": jobs(FatTree(8)),
        },
        SHOWN,
        preset.seeds(3, 10, 20),
    )


def jobs(tree: FatTree) -> list[dict[str, Any]]:
    """Return the incast from a host of each other pod, and its victim from beside a sender."""
    pod, edge = tree.hosts_per_pod, tree.hosts_per_edge
    senders = [pod * number for number in range(1, SENDERS + 1)]
    pairs = {INCAST: [[sender, 0] for sender in senders], VICTIM: [[senders[0] + 1, edge]]}
    # The victim ends while the incast lasts.
    sizes = {INCAST: 8 * VICTIM_BYTES, VICTIM: VICTIM_BYTES}
    return [
        {
            "name": name,
            "collective": {"matrix": "pairs", "pairs": flows, "message_bytes": sizes[name]},
        }
        for name, flows in pairs.items()
    ]


def rates(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `victim_gbps`, the victim's bytes over its completion time."""
    times = [times_of_jobs(text)[VICTIM] for text in frame["jobs_ps"]]
    return frame.with_columns(
        victim_gbps=pl.Series([8000 * VICTIM_BYTES / time_ps for time_ps in times])
    )


def draw(data: Data) -> dict[str, Any]:
    """Draw the victim's rate with every seed."""
    picture, axes = style.panel(3.8, 2.9)
    frame = rates(data.frame)
    for index, policy in enumerate(SHOWN):
        victim_rates = where(frame, policy=policy)["victim_gbps"].to_list()
        # Side by side, as seeds with one rate would hide each other.
        spots = [
            index + 0.5 * (number / len(victim_rates) - 0.5) for number in range(len(victim_rates))
        ]
        axes.plot(spots, victim_rates, "o", color=style.colour(policy), markersize=3)

    axes.axhline(SLOW_GBPS, color=style.BOUND, linewidth=0.8)
    axes.set_xticks(
        range(len(SHOWN)), map(style.label, SHOWN), rotation=30, ha="right", rotation_mode="anchor"
    )
    axes.set_ylim(0, GBPS)
    axes.set_ylabel("victim's rate (Gb/s)")
    return {"": picture}


def claims(data: Data) -> Iterator[Verdict]:
    """Decide B31."""
    yield passing_by(rates(data.frame))


def passing_by(frame: pl.DataFrame) -> Verdict:
    """Decide B31: with how many seeds each load balancer's victim is slowed down."""
    margin = STATEMENTS["B31"].margin
    shares = {
        policy: proportion(int((victim_rates < SLOW_GBPS).sum()), len(victim_rates))
        for policy in SHOWN
        for victim_rates in [where(frame, policy=policy)["victim_gbps"]]
    }
    outcomes = {
        **{policy: shares[policy].above(MOST, margin) for policy in SPRAYING},
        ONE_PATH: shares[ONE_PATH].within(SOME, MOST, margin),
    }
    checks = {
        "spraying slows the victim down with most seeds": every(
            outcomes[sprayer] for sprayer in SPRAYING
        ),
        "Flow does with some seeds, and with others not": outcomes[ONE_PATH],
    }
    return Verdict(
        "B31",
        decide(list(checks.values())),
        "; ".join(f"{style.label(policy)} {_said(frame, policy)}" for policy in SHOWN),
        why=not_so(checks),
        seeds=min(share.count for share in shares.values()),
        needs=_needs(outcomes),
    )


def _said(frame: pl.DataFrame, policy: str) -> str:
    victim_rates: list[float] = where(frame, policy=policy)["victim_gbps"].to_list()
    slow = [rate for rate in victim_rates if rate < SLOW_GBPS]
    reach = f" ({min(slow):.0f} to {max(slow):.0f} Gb/s)" if slow else ""
    return f"{len(slow)} of {len(victim_rates)} seeds below {SLOW_GBPS:.0f} Gb/s{reach}"


def _needs(claims: Mapping[str, bool | None]) -> Needs:
    open_ = {policy for policy, right in claims.items() if right is None}
    return lambda scenario: scenario.policy in open_


def table(data: Data) -> pl.DataFrame:
    """Return the victim's rates and the pauses of each load balancer."""
    frame = rates(data.frame)
    rows = []
    for policy in SHOWN:
        runs = where(frame, policy=policy)
        victim_rates: list[float] = runs["victim_gbps"].to_list()
        rows.append(
            {
                "scheme": style.label(policy),
                "victim, median (Gb/s)": f"{median(victim_rates):.0f}",
                "range": f"{min(victim_rates):.0f} to {max(victim_rates):.0f}",
                "pauses": f"{fmean(runs['pauses']):,.0f}",
                "dropped": int(runs["dropped"].sum()),
                "seeds": len(victim_rates),
            }
        )

    return pl.DataFrame(rows)


FIGURE = Figure(
    name="victims",
    title="Whom an incast's pauses hit",
    paper="docs/lossless.md",
    caption=(
        "Seven hosts of other pods send to one host over links that pause (PFC, 400 Gb/s, k = 8), "
        "without any control by the receiver; another flow goes to a host of another edge in that "
        "pod, whose link is idle. A dot for each seed."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
    table=table,
)
