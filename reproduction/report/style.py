"""One look for every picture, readable in print and by the colour-blind."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure as Picture

from fattree.policies import POLICIES
from fattree.texts.looks import ALERT, LOOKS
from reproduction.report.figure import VARIANTS
from reproduction.report.statistics import Estimate, estimate

# The ids inside an SVG are random without it, and the same runs would give another file each time.
mpl.rcParams["svg.hashsalt"] = "ofan"

# Bounds, laws and models, in every picture.
BOUND = ALERT
# Behind a bar's number, which its whisker would cross out.
PLATE = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
PANEL = (3.6, 2.7)
STYLE: dict[str, Any] = {
    "font.size": 8.5,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.linewidth": 0.4,
    "grid.color": "#d5d5d5",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.5,
    "errorbar.capsize": 2,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "figure.constrained_layout.use": True,
    # Text as outlines: the page has the same look wherever it is opened, and needs no font.
    "svg.fonttype": "path",
    "figure.dpi": 100,
    "savefig.dpi": 200,
}
# Data packets of 4,096 B and a header of 62 B in the default buffer of a port, 800 KB.
BUFFER_PACKETS = 192
NEAR_FULL = 0.5
# On two lines: one would be longer than a small picture is high.
INCREASE = "CCT increase\nover the bound (%)"


def panel(
    width: float = PANEL[0],
    height: float = PANEL[1],
    columns: int = 1,
    *,
    has_one_y: bool = False,
) -> tuple[Picture, Any]:
    """Return a new picture and its axes (an array if there are several columns), in our style.

    `has_one_y`: the panels side by side show the same quantity, on one y axis.
    """
    # A picture of its own, not pyplot's: nothing to close, and no display to look for.
    with mpl.rc_context(STYLE):
        picture = Picture(figsize=(width * columns, height))
        axes = picture.subplots(1, columns, sharey=has_one_y)

    return picture, axes


def label(policy: str) -> str:
    """Return the paper's name of a load balancer."""
    return VARIANTS[policy].label if policy in VARIANTS else POLICIES[policy].label


def colour(policy: str) -> str:
    """Return a load balancer's colour."""
    return LOOKS[policy].colour


def estimates(frame: pl.DataFrame, value: str, by: str) -> dict[Any, Estimate]:
    """Return the mean and interval of a column over seeds, for each value of `by`, sorted."""
    groups = frame.group_by(by, maintain_order=True).agg(pl.col(value)).sort(by)
    return {key: estimate(values) for key, values in zip(groups[by], groups[value], strict=True)}


def line(
    axes: Any,
    policy: str,
    points: Mapping[Any, Estimate],
    scale: float = 1,
    text: str | None = None,
    **look: Any,
) -> None:
    """Draw a load balancer's line with intervals."""
    ink, marker, dashes = LOOKS[policy]
    edge = {"markeredgecolor": "#333333", "markeredgewidth": 0.4}
    settings = {
        "color": ink,
        "marker": marker,
        "linestyle": dashes,
        "label": text or label(policy),
        **edge,
        **look,
    }

    means = [scale * point.mean for point in points.values()]
    halves = [scale * point.whisker for point in points.values()]
    axes.errorbar(list(points), means, yerr=halves, elinewidth=0.8, **settings)


def lines(
    axes: Any, frame: pl.DataFrame, x: str, y: str, policies: Sequence[str], scale: float = 1
) -> None:
    """Draw y over x for every load balancer that has runs, with intervals over seeds."""
    for policy in policies:
        rows = frame.filter(pl.col("policy") == policy)
        if len(rows):
            line(axes, policy, estimates(rows, y, x), scale)


def from_zero(axes: Any) -> None:
    """Let the y axis begin at 0, or below it where something lies there: nothing is hidden."""
    if axes.dataLim.y0 >= 0:
        axes.set_ylim(bottom=0)
    else:
        axes.axhline(0, color="#333333", linewidth=0.6, zorder=0.5)


def dots(
    axes: Any, places: Sequence[float], points: Sequence[Estimate], scale: float = 1, **look: Any
) -> None:
    """Draw estimates as dots with intervals: on a logarithmic axis bars have no length."""
    means = [scale * point.mean for point in points]
    halves = [scale * point.whisker for point in points]
    edge = {"markeredgecolor": "#333333", "markeredgewidth": 0.5}
    axes.errorbar(places, means, yerr=halves, **{"fmt": "o", "markersize": 6, **edge, **look})


def plain_log(axes: Any, ticks: Sequence[float]) -> None:
    """Make the y axis logarithmic, with plain numbers where there are data."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    shown = [tick for tick in ticks if low <= tick <= high]
    axes.set_yticks(shown, [f"{tick:g}" for tick in shown])
    axes.minorticks_off()


def buffer_line(axes: Any, *, is_right: bool = False) -> None:
    """Mark the packets that a port's default buffer holds, where queues come near to it."""
    top = axes.get_ylim()[1]
    if top < NEAR_FULL * BUFFER_PACKETS:
        return

    axes.set_ylim(top=max(top, 1.1 * BUFFER_PACKETS))
    axes.axhline(BUFFER_PACKETS, color=BOUND, linewidth=0.8, linestyle=(0, (4, 2)), zorder=0.8)
    axes.annotate(
        f"buffer: {BUFFER_PACKETS}",
        (int(is_right), BUFFER_PACKETS),
        (-3 if is_right else 3, 2),
        ha="right" if is_right else "left",
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        color=BOUND,
        fontsize=6.5,
    )


def bars(axes: Any, points: Mapping[str, Estimate], scale: float = 1, digits: int = 1) -> None:
    """Draw a bar per load balancer with its interval and value."""
    # A long whisker may leave the picture: it would flatten the bars of all other schemes.
    top = max(
        scale * point.mean + min(scale * point.whisker, 0.85 * scale * abs(point.mean))
        for point in points.values()
    )
    # Below the bound (from a flow's first packet that is possible) there is something to see, too.
    below = [scale * point.mean - 0.1 * top for point in points.values() if point.mean < 0]
    low = min([0, *below])

    for index, (policy, point) in enumerate(points.items()):
        half = scale * point.whisker
        axes.bar(
            index,
            scale * point.mean,
            yerr=half,
            color=colour(policy),
            edgecolor="#333333",
            linewidth=0.5,
            width=0.75,
        )

        text = f"{scale * point.mean:.{digits}f}".replace("-", "−")
        # Above the whisker; beside a whisker that leaves the picture.
        leaves = scale * point.mean + half > top
        height = scale * point.mean if leaves else max(0, scale * point.mean + half)
        axes.annotate(
            text,
            (index + 0.06 if leaves else index, height),
            (0, 2),
            textcoords="offset points",
            ha="left" if leaves else "center",
            fontsize=7,
            bbox=None if leaves else PLATE,
        )

    axes.set_ylim(low, top * 1.1)
    if low < 0:
        axes.axhline(0, color="#333333", linewidth=0.6)

    slanted(axes, [label(policy) for policy in points])


def slanted(axes: Any, names: Sequence[str], degrees: float = 40) -> None:
    """Write names under the places 0, 1, ... of the x axis, slanted, each ending at its place."""
    axes.set_xticks(range(len(names)), names, rotation=degrees, ha="right", rotation_mode="anchor")


def increase_bars(
    frame: pl.DataFrame, policies: Sequence[str], width: float = PANEL[0], height: float = PANEL[1]
) -> Picture:
    """Return a bar chart of the load balancers' CCT increase."""
    picture, axes = panel(width, height)
    increases = estimates(frame, "sending_increase", "policy")
    bars(axes, {policy: increases[policy] for policy in policies}, scale=100)
    axes.set_ylabel(INCREASE)

    return picture


def increase_lines(frame: pl.DataFrame, x: str, text: str, policies: Sequence[str]) -> Picture:
    """Return CCT increases over a column of powers of two, which `text` names."""
    picture, axes = panel()
    lines(axes, frame, x, y="sending_increase", policies=policies, scale=100)
    powers_of_two(axes, sorted(frame[x].unique()))
    from_zero(axes)
    axes.set_xlabel(text)
    axes.set_ylabel(INCREASE)
    axes.legend()

    return picture


def powers_of_two(axes: Any, ticks: Sequence[int], names: Sequence[str] | None = None) -> None:
    """Make the x axis logarithmic with these ticks and no others."""
    axes.set_xscale("log", base=2)
    # Ticks stand where there are runs; a logarithmic axis would add powers of its own.
    axes.set_xticks(list(ticks), list(names or map(str, ticks)))
    axes.minorticks_off()


def legend_above(picture: Picture, axes: Any, columns: int = 3) -> None:
    """Put the legend of one axes above the picture."""
    handles, labels = axes.get_legend_handles_labels()
    # A legend takes its style when it is made, and `panel` has left ours by then.
    with mpl.rc_context(STYLE):
        picture.legend(handles, labels, loc="outside upper center", ncols=columns)
