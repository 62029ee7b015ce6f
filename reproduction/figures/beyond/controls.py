"""MSwift and NSCC under the same load balancers (docs/congestion.md)."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from fattree.experiment.model import Scenario
from reproduction.figures.beyond.shared import each, groups, seeds_of, slower, spans
from reproduction.report import schemes, style
from reproduction.report.claims import decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid, parts
from reproduction.report.looks import Needs
from reproduction.report.schemes import (
    MIB,
    difference,
    listed,
    mean_of,
    not_so,
    paired_by_seed,
    percent,
)
from reproduction.report.statements import STATEMENTS
from reproduction.report.statistics import Estimate, every

SHOWN = ("host_pkt", "host_pkt_ar", "switch_pkt_ar", "uet_bitmap", "host_dr", "themis", "ofan")
GROWING = ("host_pkt", "host_pkt_ar", "switch_pkt_ar", "uet_bitmap")
CONTROLS = {"fixed rate": "fixed", "MSwift": "mswift", "NSCC": "nscc"}
SLOWING = ("MSwift", "NSCC")
FIXED = "fixed rate"
INCAST = "8 to 1"
PERMUTATION = "permutation"
LINE_RATE = 0.01
ALIKE = 0.005
HELPLESS = 0.02


def part(matrix: str, control: str) -> str:
    """Return the name of a matrix's runs under a control."""
    return f"{matrix}, {control}"


def scenarios(preset: Preset) -> list[Scenario]:
    """Return a permutation and an incast under each control."""
    k = preset.pick(4, 8, 8)
    matrices = {
        PERMUTATION: {
            **schemes.PERMUTATION,
            "collective__message_bytes": preset.pick(2, 8, 8) * MIB,
        },
        # As in docs/congestion.md: the first windows queue for long, which is no loss.
        INCAST: {
            "fabric__queue_bytes": 0,
            "transport__sack_threshold": 1000,
            "transport__timer_floor_rtt": 64,
            "collective__matrix": "pairs",
            "collective__message_bytes": preset.pick(2, 16, 16) * MIB,
            # Senders behind other edges than the receiver's, two behind each.
            "collective__pairs": [(k // 2 + sender * k // 4, 0) for sender in range(8)],
        },
    }
    return [
        scenario
        for matrix, traffic in matrices.items()
        for control, congestion in CONTROLS.items()
        if matrix == PERMUTATION or control != FIXED
        for scenario in grid(
            {
                "name": part(matrix, control),
                "fabric__k": k,
                "transport__recovery": "sack",
                "transport__congestion": congestion,
                **traffic,
            },
            SHOWN,
            preset.seeds(3, 10, 20),
        )
    ]


def draw(data: Data) -> dict[str, Any]:
    """Draw CCT and queues of the permutation, and CCT of the incast."""
    permutation = _short(data, PERMUTATION, CONTROLS)
    incast = {name: with_need(rows) for name, rows in _short(data, INCAST, SLOWING).items()}
    column = "sending_increase"
    return {
        "permutation: CCT": _panel(permutation, column, style.INCREASE, 100),
        "permutation: longest queue": _panel(
            permutation, "max_queue_packets", "longest queue\n(packets)", 1
        ),
        "8 to 1: CCT": _panel(incast, "over_need", "CCT over what the\nlink needs (%)", 100),
    }


def with_need(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with `over_need`: how much longer it took than one link needs for all."""
    size = sum(pl.col(f"packets.{part}_bytes") for part in ("payload", "header", "gap"))
    need_ps = pl.col("packets") * size * 8000 / pl.col("fabric.rate_gbps")
    return frame.with_columns(over_need=pl.col("sending_cct_ps") / need_ps - 1)


def _short(data: Data, matrix: str, controls: Any) -> dict[str, pl.DataFrame]:
    return {
        control: rows for control in controls for rows in data.parts(part(matrix, control)).values()
    }


def _panel(frames: dict[str, pl.DataFrame], column: str, text: str, scale: float) -> Any:
    picture, axes = style.panel(4.6, 3.2)
    if frames:
        spans(picture, axes, groups(frames, SHOWN, column), text, scale)

    if column == "max_queue_packets":
        style.buffer_line(axes, is_right=True)

    return picture


def claims(data: Data) -> Iterator[Verdict]:
    """Decide B18 to B21."""
    frames = {control: data.named(part(PERMUTATION, control)) for control in CONTROLS}
    yield line_rate(frames)
    yield nscc_ahead(frames)
    yield bitmap(frames)
    incast = {control: data.named(part(INCAST, control)) for control in SLOWING}
    yield receivers({control: with_need(frame) for control, frame in incast.items()})


def line_rate(frames: dict[str, pl.DataFrame]) -> Verdict:
    """Decide B18."""
    margin = STATEMENTS["B18"].margin
    increases = {control: mean_of(frames[control], "ofan") for control in CONTROLS}
    apart = under(frames, "ofan")
    checks = {
        f"below 1 % with {control}": increases[control].below(LINE_RATE, margin)
        for control in SLOWING
    }
    checks["both alike"] = apart.within(-ALIKE, ALIKE, margin)
    return Verdict(
        "B18",
        decide(list(checks.values())),
        "Ofan: "
        + ", ".join(f"{control} {percent(increase, 2)}" for control, increase in increases.items()),
        why=not_so(checks),
        seeds=seeds_of(frames.values()),
        needs=_under(SLOWING, ("ofan",)),
    )


def _under(controls: Sequence[str], policies: Sequence[str]) -> Needs:
    """Return the predicate for permutations of these load balancers under these controls."""
    named = parts(*(part(PERMUTATION, control) for control in controls))
    return lambda scenario: named(scenario) and scenario.policy in policies


def under(frames: dict[str, pl.DataFrame], policy: str) -> Estimate:
    """Return a load balancer's increase with NSCC less that with MSwift, paired by seed."""
    nscc, mswift = (schemes.where(frames[name], policy=policy) for name in ("NSCC", "MSwift"))
    return paired_by_seed(nscc, mswift)


# Measured in docs/load-balancers-since.md, and shown by the longest queues here.
KEEPS = (
    "UET Bitmap keeps a flow's 64 labels, so that the same queues go on growing with the message: "
    "they fill the buffer (192 packets) under either control, where new labels spread anew."
)


def nscc_ahead(frames: dict[str, pl.DataFrame]) -> Verdict:
    """Decide B19."""
    gaps = {policy: under(frames, policy) for policy in SHOWN}
    checks = {
        f"NSCC is ahead under {style.label(policy)}": gaps[policy].below(
            0, STATEMENTS["B19"].margin
        )
        for policy in GROWING
    }
    return Verdict(
        "B19",
        decide(list(checks.values())),
        "NSCC - MSwift: "
        + ", ".join(
            f"{style.label(policy)} {schemes.versus(gap, STATEMENTS['B19'].margin)}"
            for policy, gap in gaps.items()
        ),
        why=not_so(checks, KEEPS),
        evidence="; ".join(f"{name}: {listed(rows, SHOWN)}" for name, rows in frames.items())
        + f"; longest queues in packets: {each(frames, _queues)}",
        seeds=seeds_of(frames.values()),
        needs=_under(
            SLOWING,
            [
                policy
                for policy in GROWING
                if checks[f"NSCC is ahead under {style.label(policy)}"] is None
            ],
        ),
    )


def _queues(frame: pl.DataFrame) -> str:
    shown = ("host_pkt", "uet_bitmap")
    return ", ".join(
        f"{style.label(policy)} {mean_of(frame, policy, 'max_queue_packets'):.0f}"
        for policy in shown
    )


def bitmap(frames: dict[str, pl.DataFrame]) -> Verdict:
    """Decide B20."""
    gaps = {
        control: difference(frame, "uet_bitmap", "host_pkt") for control, frame in frames.items()
    }
    checks = {
        "UET Bitmap is ahead of Host Pkt with NSCC": gaps["NSCC"].below(
            0, STATEMENTS["B20"].margin
        ),
        "it is behind at a fixed rate": gaps[FIXED].above(0, STATEMENTS["B20"].margin),
    }
    return Verdict(
        "B20",
        decide(list(checks.values())),
        "UET Bitmap - Host Pkt: "
        + ", ".join(f"{control} {percent(gap)}" for control, gap in gaps.items()),
        why=not_so(checks, KEEPS),
        seeds=seeds_of(frames.values()),
        needs=_under(("NSCC", FIXED), ("uet_bitmap", "host_pkt")),
    )


def receivers(frames: dict[str, pl.DataFrame]) -> Verdict:
    """Decide B21."""
    rivals = [policy for policy in SHOWN if policy != "ofan"]
    checks = {
        f"all are within 2 % of Ofan with {control}": every(
            slower(frame, rival).within(-HELPLESS, HELPLESS, STATEMENTS["B21"].margin)
            for rival in rivals
        )
        for control, frame in frames.items()
    }
    return Verdict(
        "B21",
        decide(list(checks.values())),
        "over what the receiver's link needs: "
        + each(frames, lambda rows: listed(rows, SHOWN, 1, "over_need")),
        why=not_so(checks),
        seeds=seeds_of(frames.values()),
        needs=parts(*(part(INCAST, control) for control in frames)),
        panel="8 to 1: CCT",
    )


FIGURE = Figure(
    name="controls",
    title="Congestion control: MSwift and NSCC",
    paper="as figure 13 (CCA); docs/congestion.md",
    caption=(
        "An 8 MiB permutation on 128 hosts with SACK, at a fixed rate and with either control; "
        "and eight hosts of other edges that send 16 MiB each to one, with buffers without limit."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
)
