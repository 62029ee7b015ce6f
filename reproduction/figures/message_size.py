"""CCT as messages grow (section 8.1), and why Host Pkt AR freezes at large ones."""

from collections.abc import Mapping
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fattree.experiment.model import Scenario
from reproduction.report import schemes, style
from reproduction.report.claims import POINT, decide
from reproduction.report.figure import Data, Figure, Preset, Verdict, grid, slug
from reproduction.report.schemes import BEST, KIB, MIB, mean_of, names, not_so, percent, where
from reproduction.report.statistics import Estimate, every, one_direction, opposite, paired

ATA = "all-to-all"
PERMUTATION = "permutation"
IMPATIENT = "timer of 1 RTT"
ATA_SIZES = (16 * KIB, 64 * KIB, 256 * KIB, MIB)
PERMUTATION_SIZES = tuple(4**power * 16 * KIB for power in range(7))  # 16 KB to 64 MB
FREEZING = "host_pkt_ar"
Values = NDArray[np.float64]


def scenarios(preset: Preset) -> list[Scenario]:
    """Return both matrices with every size, Host Pkt AR also with a timer of one RTT."""
    ata = schemes.ALL_TO_ALL | {"fabric__k": preset.pick(4, 8, 8)}
    ata_sizes = (*ATA_SIZES, *preset.pick((), (), (2 * MIB, 4 * MIB)))
    sizes = PERMUTATION_SIZES[: preset.pick(6, 7, 7)]
    impatient = {"transport__timer_floor_rtt": 1}
    seeds = preset.seeds()
    runs = grid(
        {"name": ATA, **ata},
        BEST,
        preset.seeds(),
        collective__message_bytes=ata_sizes,
    )

    for size in sizes:
        runs += grid(
            {"name": PERMUTATION, **schemes.PERMUTATION},
            BEST,
            seeds,
            collective__message_bytes=(size,),
        )
        if size <= 16 * MIB:
            base = {"name": IMPATIENT, **schemes.PERMUTATION, **impatient}
            runs += grid(base, (FREEZING,), seeds, collective__message_bytes=(size,))

    return runs


def draw(data: Data) -> dict[str, Any]:
    """Draw lines over the message size, one panel a matrix; the impatient timer is dotted."""
    impatient = {ATA: None, PERMUTATION: data.named(IMPATIENT)}
    return {
        name: _lines(rows, impatient[name]) for name, rows in data.parts(ATA, PERMUTATION).items()
    }


def _lines(frame: pl.DataFrame, impatient: pl.DataFrame | None) -> Any:
    picture, axes = style.panel(3.6, 3.1)
    style.lines(axes, frame, x="message_bytes", y="sending_increase", policies=BEST, scale=100)
    if impatient is not None:
        points = style.estimates(impatient, "sending_increase", "message_bytes")
        style.line(
            axes,
            policy=FREEZING,
            points=points,
            scale=100,
            text="Host Pkt AR, timer ≥ 1 RTT",
            linestyle=":",
            markerfacecolor="white",
        )

    sizes = sorted(frame["message_bytes"].unique())
    style.powers_of_two(axes, sizes, [_size(size) for size in sizes])
    axes.tick_params(axis="x", labelrotation=45)
    style.from_zero(axes)
    axes.set_xlabel("message size")
    axes.set_ylabel(style.INCREASE)
    style.legend_above(picture, axes, columns=2)

    return picture


def _size(size: int) -> str:
    return f"{size // MIB} MB" if size >= MIB else f"{size // KIB} KB"


def claims(data: Data) -> list[Verdict]:
    """Decide C12."""
    # The permutation decides: it alone reaches the "very large message".
    frame = data.named(PERMUTATION)
    gaps = pair_gaps(frame)
    frames = dict(_sizes(where(frame, policy=FREEZING)))
    increases = {size: schemes.of_policy(rows, FREEZING) for size, rows in frames.items()}
    frozen = {size: mean_of(rows, FREEZING, "freezes").mean for size, rows in frames.items()}
    turn = lowest_from(increases)
    checks: dict[str, bool | None] = {
        "no pair changes direction": every(
            one_direction(sizes.values(), POINT) for sizes in gaps.values()
        ),
        "gaps shrink from their peak on": every(
            # Where Host Pkt AR rises again is the claim's third part.
            shrinks(values, until=turn if FREEZING in pair else max(increases))
            for pair, values in _gap_values(frame).items()
        ),
        "Host Pkt AR rises again at very large messages": rises(increases, turn),
        "it freezes there": frozen[max(frozen)] > 0,
    }
    counts = ", ".join(f"{_size(size)} {count:.0f}" for size, count in frozen.items())
    impatient = ", ".join(
        f"{_size(size)} {percent(mean_of(rows, FREEZING))}"
        for size, rows in _sizes(data.named(IMPATIENT))
    )

    return [
        Verdict(
            "C12",
            verdict=decide(list(checks.values())),
            ours=(
                f"permutation, {names(BEST)}: {_row(by_size(frame))}; Host Pkt AR is lowest at "
                f"{_size(turn)}; freezes per run {counts}"
            ),
            paper=(
                "order does not change, gaps shrink, Host Pkt AR notably worse at very large "
                "messages"
            ),
            why=not_so(checks),
            evidence=(
                "gaps: "
                + "; ".join(
                    f"{names(pair).replace(', ', ' - ')} "
                    + ", ".join(f"{percent(gap)} ({_size(size)})" for size, gap in sizes.items())
                    for pair, sizes in gaps.items()
                )
                + f"; Host Pkt AR with a timer floor of one RTT instead of three: {impatient}"
            ),
            seeds=min(map(schemes.seeds_of, dict(_sizes(frame)).values())),
            needs=lambda scenario: scenario.name == slug(PERMUTATION),
        )
    ]


def pair_gaps(frame: pl.DataFrame) -> dict[tuple[str, str], dict[int, Estimate]]:
    """Return the paired difference of every two schemes at every size."""
    return {
        pair: {size: schemes.difference(rows, *pair) for size, rows in _sizes(frame)}
        for pair in combinations(BEST, 2)
    }


def _gap_values(frame: pl.DataFrame) -> dict[tuple[str, str], dict[int, Values]]:
    return {
        (a, b): {
            size: np.abs(schemes.of_policy(rows, a) - schemes.of_policy(rows, b))
            for size, rows in _sizes(frame)
        }
        for a, b in combinations(BEST, 2)
    }


def shrinks(gaps: Mapping[int, Values], until: int) -> bool | None:
    """Return whether a pair's gap falls from its peak on, up to a size.

    It must be lower at the end than at the peak, and no step may rise by more than its interval.
    """
    sizes = [size for size in sorted(gaps) if size <= until]
    peak = max(sizes, key=lambda size: float(gaps[size].mean()))
    after = [size for size in sizes if size >= peak]
    if len(after) == 1:
        return False

    steps = [paired(gaps[b], gaps[a]) for a, b in pairwise(after)]
    falls = every(opposite(step.above(0, POINT)) for step in steps)

    return every([falls, paired(gaps[after[-1]], gaps[peak]).below(0, POINT)])


def lowest_from(increases: Mapping[int, Values]) -> int:
    """Return the size of the least mean increase, of those from 1 MB on."""
    return min(
        (size for size in increases if size >= MIB), key=lambda size: float(increases[size].mean())
    )


def rises(increases: Mapping[int, Values], turn: int) -> bool | None:
    """Return whether the increase at the largest size is above its minimum's."""
    last = max(increases)
    return False if turn == last else paired(increases[last], increases[turn]).above(0, POINT)


def _sizes(frame: pl.DataFrame) -> list[tuple[int, pl.DataFrame]]:
    return [
        (size, where(frame, message_bytes=size)) for size in sorted(frame["message_bytes"].unique())
    ]


def by_size(frame: pl.DataFrame) -> dict[int, dict[str, float]]:
    """Return the mean increase of every scheme for each message size."""
    return {
        size: {policy: mean_of(rows, policy).mean for policy in BEST}
        for size, rows in _sizes(frame)
    }


def table(data: Data) -> pl.DataFrame:
    """Return the all-to-all's increases in both forms: a gap is a large part of short ones."""
    return pl.DataFrame(
        [
            {
                "all-to-all of": _size(size),
                "scheme": style.label(policy),
                "increase from the start": percent(mean_of(rows, policy, "increase"), 2),
                "from each flow's first packet": percent(mean_of(rows, policy), 2),
                "seeds": schemes.seeds_of(rows),
            }
            for size, rows in _sizes(data.named(ATA))
            for policy in BEST
        ]
    )


def _row(by_bytes: Mapping[int, Mapping[str, float]]) -> str:
    return ", ".join(
        f"{_size(size)} {' / '.join(f'{100 * row[policy]:.1f}' for policy in BEST)} %"
        for size, row in by_bytes.items()
    )


FIGURE = Figure(
    name="message_size",
    title="Message size",
    paper="Figure 10 (message size), section 8.1",
    caption=(
        "CCT increase over the bound on 128 hosts. Dotted: Host Pkt AR when labels may time out "
        "after one RTT already, not three."
    ),
    scenarios=scenarios,
    draw=draw,
    claims=claims,
    table=table,
)
