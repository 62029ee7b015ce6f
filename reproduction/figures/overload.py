"""The most loaded link of each stage: why rotation per destination is better (section 7)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from fattree.experiment.model import Scenario
from reproduction.report import schemes, style
from reproduction.report.claims import CLAIMS, decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid
from reproduction.report.measures.overload import STAGES, worst_overload
from reproduction.report.schemes import KIB, MIB, SPRAYING, names, not_so, where
from reproduction.report.statistics import Estimate, estimate, every

# Figure "overload" has these two, which tell Host DR from Ofan.
LARGE = "1 MB"
SMALL = "32 KB"
# "Perfect local LB at uplinks", and "the other non-DR algorithms".
LOCAL = ("simple_rr", "jsq")
LOCAL_SHARED = ("simple_rr_shared", "jsq")
RANDOM = ("rsq", "host_pkt", "host_pkt_ar", "switch_pkt_ar")
PAYLOADS = (512, 1024, 2048, 4096, 8192)
DEFAULT_PAYLOAD = 4096
UPLINKS = STAGES[:2]
DOWNLINKS = STAGES[2:]
# The measures: the load in bytes, or in packets.
BYTES = "overload"
PACKETS = "overload_packets"
# Margins of ours. At 1 MB and 4 KB a link's share is 256 packets, and 5 % of it are thirteen.
PERFECT = 0.05
POOR = 0.10


class Overload(NamedTuple):
    """A scheme's worst overload, of two stages each."""

    uplinks: Estimate
    downlinks: Estimate


def scenarios(preset: Preset) -> list[Scenario]:
    """Return both message sizes with every packet size."""
    seeds = preset.seeds()
    return [
        scenario
        for name, size in ((LARGE, MIB), (SMALL, 32 * KIB))
        for scenario in grid(
            {"name": name, **schemes.INTER_POD, "collective__message_bytes": size},
            SPRAYING,
            seeds,
            packets__payload_bytes=PAYLOADS,
        )
    ]


def draw(data: Data) -> dict[str, Any]:
    """Draw four panels, one a stage, for each message size."""
    return {name: _stages(stages(rows)) for name, rows in data.parts(LARGE, SMALL).items()}


def stages(frame: pl.DataFrame, measured: str = BYTES) -> pl.DataFrame:
    """Return the frame with a column for each stage."""
    return frame.with_columns(
        pl.col(measured).list.get(number).alias(stage) for number, stage in enumerate(STAGES)
    )


def _stages(frame: pl.DataFrame) -> Any:
    picture, row = style.panel(2.05, 3, columns=len(STAGES), has_one_y=True)
    for axes, stage in zip(row, STAGES, strict=True):
        style.lines(axes, frame, x="packets.payload_bytes", y=stage, policies=SPRAYING, scale=100)
        style.powers_of_two(axes, PAYLOADS, ["0.5", "1", "2", "4", "8"])
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(0, 400)
        axes.set_yticks([0, 1, 10, 100], ["0", "1", "10", "100"])
        axes.set_title(stage, fontsize=8.5)
        axes.set_xlabel("payload (KB)")

    row[0].set_ylabel("worst link overload (%)")
    style.legend_above(picture, row[0], columns=4)
    return picture


def claims(data: Data) -> list[Verdict]:
    """Decide C09, at the default packet size."""
    # The text names none; at other sizes the evidence counts how many parts hold.
    in_bytes = {name: worst(stages(data.named(name))) for name in (LARGE, SMALL)}
    packets = {name: worst(stages(data.named(name), PACKETS)) for name in (LARGE, SMALL)}
    checks = judged(in_bytes[LARGE], in_bytes[SMALL])
    counted = judged(packets[LARGE], packets[SMALL])
    shared = judged(in_bytes[LARGE], in_bytes[SMALL], LOCAL_SHARED)
    differing = [text for text, right in counted.items() if right != checks[text]]

    return [
        Verdict(
            "C09",
            verdict=decide(list(checks.values())),
            ours=(
                "payload of 4 KB, worst link in % over an even split on uplinks and downlinks: "
                f"1 MB: {_row(in_bytes[LARGE])}; 32 KB: {_row(in_bytes[SMALL])}; in packets "
                f"instead of bytes: 1 MB: {_row(packets[LARGE])}; other in packets: "
                f"{'; '.join(differing) or 'no part'}"
            ),
            paper=(
                "Simple RR and JSQ perfect on uplinks, poor on downlinks; Host DR perfect for "
                "large messages only"
            ),
            why=not_so(checks, WHY),
            evidence=_all_sizes(data),
            seeds=schemes.seeds_of(data.frame),
            needs=_judged_size,
        ),
        Verdict(
            "C09",
            verdict=decide(list(shared.values())),
            ours=not_so(shared) or "all parts hold",
            criterion="as above, Simple RR with one pointer for data and ACKs (section 7's text)",
            seeds=schemes.seeds_of(data.frame),
            needs=_judged_size,
        ),
    ]


WHY = (
    "JSQ breaks ties at random and queues at uplinks are often empty, so it is not exactly even; "
    "Switch Pkt AR is random only within a bin of 5 % of the buffer, which corrects an uplink that "
    "falls behind, so it lies between JSQ and random spraying."
)


def _judged_size(scenario: Scenario) -> bool:
    return scenario.packets.payload_bytes == DEFAULT_PAYLOAD


def worst(frame: pl.DataFrame, payload: int = DEFAULT_PAYLOAD) -> dict[str, Overload]:
    """Return every scheme's worst overload, of uplinks and of downlinks, at a packet size."""
    rows = where(frame, packets__payload_bytes=payload)
    return {
        policy: Overload(
            uplinks=_worst(where(rows, policy=policy), UPLINKS),
            downlinks=_worst(where(rows, policy=policy), DOWNLINKS),
        )
        for policy in SPRAYING
    }


def _worst(rows: pl.DataFrame, of: tuple[str, ...]) -> Estimate:
    # By means: the largest single run of two stages would be above either stage's.
    return max((estimate(rows[stage]) for stage in of), key=lambda by_policy: by_policy.mean)


def judged(
    large: Mapping[str, Overload],
    small: Mapping[str, Overload],
    local: tuple[str, ...] = LOCAL,
) -> dict[str, bool | None]:
    """Return each part of C09 with whether it holds, None where the interval does not decide."""
    margin = CLAIMS["C09"].margin
    # Whole groups are poor on both if the better of the two is.
    return {
        "Simple RR and JSQ are perfect on uplinks at 1 MB": every(
            large[policy].uplinks.below(PERFECT, margin) for policy in local
        ),
        "Simple RR and JSQ are poor on downlinks at 1 MB": every(
            large[policy].downlinks.above(POOR, margin) for policy in local
        ),
        f"{names(RANDOM)} are poor on both at 1 MB": every(
            part.above(POOR, margin) for policy in RANDOM for part in large[policy]
        ),
        "Host DR is perfect at 1 MB": every(
            part.below(PERFECT, margin) for part in large["host_dr"]
        ),
        "Host DR is not perfect at 32 KB": _highest(small["host_dr"]).above(PERFECT, margin),
        "Ofan is below Host DR at 32 KB": _apart(
            _highest(small["ofan"]), _highest(small["host_dr"])
        ),
    }


def _highest(parts: Overload) -> Estimate:
    return max(parts, key=lambda part: part.mean)


def _apart(low: Estimate, high: Estimate) -> bool | None:
    if low.high < high.low:
        return True

    return False if low.low > high.high - CLAIMS["C09"].margin else None


def _row(by_policy: Mapping[str, Overload]) -> str:
    return ", ".join(
        f"{style.label(p)} {100 * up.mean:.1f} / {100 * down.mean:.1f}"
        for p, (up, down) in by_policy.items()
    )


def _all_sizes(data: Data) -> str:
    """Return how many of the claim's parts hold at each packet size."""
    large, small = (stages(data.named(name)) for name in (LARGE, SMALL))
    parts = []
    for payload in PAYLOADS:
        checks = judged(worst(large, payload), worst(small, payload))
        parts.append(
            f"{payload} B: {sum(right is True for right in checks.values())} of {len(checks)}"
        )

    return f"parts of the claim that hold at payloads of {', '.join(parts)}"


FIGURE = Figure(
    name="overload",
    title="Worst link overload of each stage",
    paper="Figure 7 (overload), section 7",
    caption=(
        "Most loaded link of each inter-switch stage over an even split, inter-pod permutation "
        "on 128 hosts, against the packet size."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
    measure=worst_overload,
)
