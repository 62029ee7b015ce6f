"""Common parts of the figures beyond the paper: load balancers, texts and drawings of leads."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure as Picture

from fattree.texts.looks import LOOKS
from reproduction.report import schemes, style
from reproduction.report.schemes import difference, mean_of, names, percent
from reproduction.report.statistics import Estimate, estimate

# The paper's rows and those since, but Ofan's variants, which are Ofan.
OTHERS = (
    "flow",
    "subflow",
    "host_flowlet_ar",
    "host_pkt",
    "host_pkt_ar",
    "switch_pkt",
    "simple_rr",
    "switch_pkt_ar",
    "jsq",
    "rsq",
    "host_dr",
    "themis",
    "uet_bitmap",
)
ROWS = (*OTHERS, "ofan", "ofan_fib", "ofan_jsq_start")
# Where runs are dear: some of each kind. The first four do not rotate.
NO_ROTATION = ("flow", "host_pkt", "host_pkt_ar", "switch_pkt_ar")
ROTATIONS = ("host_dr", "themis")
CHOSEN = (*NO_ROTATION, *ROTATIONS, "ofan")
# Letters of names below an x axis that go on an inch of a picture, its y axis taken off.
LETTERS = 11
# Of logarithmic axes of per cents and packets.
TICKS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)


def next_best(frame: pl.DataFrame, rivals: Sequence[str], column: str) -> str:
    """Return Ofan's value, and who comes closest to it or is ahead of it."""
    best = schemes.order(frame, rivals, column)[0]
    gap = difference(frame, best, "ofan", column)
    return (
        f"Ofan {percent(mean_of(frame, 'ofan', column))}, {style.label(best)} "
        f"{percent(gap)} above it"
    )


def behind(frame: pl.DataFrame, rivals: Sequence[str], column: str = "sending_increase") -> str:
    """Return the load balancers that are not surely above Ofan, nothing if all are."""
    not_above = [policy for policy in rivals if not schemes.below(frame, "ofan", policy, column)]
    return f", not ahead of {names(not_above)}" if not_above else ""


def spans(
    picture: Any,
    axes: Any,
    estimates: Mapping[str, Mapping[str, Estimate]],
    text: str,
    scale: float = 100,
    is_log: bool = True,
) -> None:
    """Draw groups of dots with intervals, a group a place, a load balancer a colour.

    A logarithmic axis is for completion times: Flow's is often a hundred times the others'.
    """
    shown = list(dict.fromkeys(policy for points in estimates.values() for policy in points))
    for number, policy in enumerate(shown):
        places = [
            position + 0.7 * ((number + 0.5) / len(shown) - 0.5)
            for position, points in enumerate(estimates.values())
            if policy in points
        ]
        points = [group[policy] for group in estimates.values() if policy in group]
        ink, marker, _ = LOOKS[policy]
        look = {"color": ink, "fmt": marker, "label": style.label(policy), "markersize": 5}
        style.dots(axes, places, points, scale, **look)

    for border in range(1, len(estimates)):
        axes.axvline(border - 0.5, color="#d5d5d5", linewidth=0.6)

    if is_log:
        style.plain_log(axes, TICKS)

    axes.set_xlim(-0.5, len(estimates) - 0.5)
    axes.set_xticks(
        range(len(estimates)), [_fitting(picture, name, len(estimates)) for name in estimates]
    )
    axes.set_ylabel(text)
    style.legend_above(picture, axes, columns=4)


def _fitting(picture: Any, name: str, places: int) -> str:
    """Return a name in lines that are no longer than its place on the x axis is wide."""
    letters = int(LETTERS * picture.get_figwidth() / places)
    return "\n".join(fill(line, letters, break_long_words=False) for line in name.split("\n"))


def slower(frame: pl.DataFrame, policy: str) -> Estimate:
    """Return by which share a run takes longer than with Ofan, paired by seed."""
    times = [schemes.of_policy(frame, scheme, "cct_ps") for scheme in (policy, "ofan")]
    both = min(map(len, times))
    return estimate(times[0][:both] / times[1][:both] - 1)


def rows_of_dots(frame: pl.DataFrame, policies: Sequence[str]) -> Any:
    """Return a picture of CCT and longest queues with a dot and its interval for every row."""
    with mpl.rc_context(style.STYLE):
        picture = Picture(figsize=(4, 3.9))
        above, below = picture.subplots(2, 1, sharex=True)

    _dots(above, frame, policies, "sending_increase", 100)
    _dots(below, frame, policies, "max_queue_packets", 1)
    above.set_ylabel(style.INCREASE)
    below.set_ylabel("longest queue\n(packets)")
    style.buffer_line(below, is_right=True)
    below.set_xlim(-0.6, len(policies) - 0.1)
    style.slanted(below, [style.label(policy) for policy in policies])
    return picture


def _dots(
    axes: Any, frame: pl.DataFrame, policies: Sequence[str], column: str, scale: float
) -> None:
    for position, policy in enumerate(policies):
        ink, marker, _ = LOOKS[policy]
        point = mean_of(frame, policy, column)
        style.dots(axes, [position], [point], scale, color=ink, fmt=marker)
        value = scale * point.mean
        axes.annotate(
            f"{value:.0f}" if abs(value) >= 20 else f"{value:.1f}",
            (position, scale * (point.mean + point.whisker)),
            (0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=5.5,
        )

    style.plain_log(axes, TICKS)


def groups(
    data: Mapping[str, pl.DataFrame], policies: Iterable[str], column: str
) -> dict[str, dict[str, Estimate]]:
    """Return the mean of every load balancer that a part has, by part."""
    return {
        part: {
            policy: mean_of(rows, policy, column)
            for policy in policies
            if policy in rows["policy"].unique()
        }
        for part, rows in data.items()
    }


def seeds_of(frames: Iterable[pl.DataFrame]) -> int:
    """Return how many seeds the part with the fewest has."""
    return min(map(schemes.seeds_of, frames))


def each(frames: Mapping[str, pl.DataFrame], said: Callable[[pl.DataFrame], str]) -> str:
    """Return every part's name and text, in the order of the parts."""
    return "; ".join(f"{part}: {said(frame)}" for part, frame in frames.items())
