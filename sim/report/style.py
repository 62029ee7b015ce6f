"""One look for every picture: a colour, marker and line for each load balancer, readable in print
and by the colour-blind.
"""

from collections.abc import Mapping, Sequence
from itertools import cycle
from math import isnan
from typing import Any

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure as Picture

from fattree.policies import POLICIES
from sim.report.statistics import Estimate, estimate

mpl.rcParams["svg.hashsalt"] = "ofan"

# Okabe and Ito's palette, then darker neighbours for the rarely drawn; shape and line tell apart
# what colour does not.
LOOK: dict[str, tuple[str, str, str]] = {
    "flow": ("#000000", "x", ":"),
    "subflow": ("#7f7f7f", "+", ":"),
    "host_flowlet_ar": ("#8c6d46", "1", ":"),
    "host_pkt": ("#56B4E9", "v", "--"),
    "host_pkt_ar": ("#0072B2", "^", "--"),
    "switch_pkt": ("#F0E442", "<", "-."),
    "simple_rr": ("#b8860b", ">", "-."),
    "switch_pkt_ar": ("#E69F00", "s", "-"),
    "jsq": ("#D55E00", "D", "-"),
    "rsq": ("#CC79A7", "p", "-"),
    "host_dr": ("#009E73", "P", "--"),
    "ofan": ("#7A1FA2", "o", "-"),
    "ofan_fib": ("#B58AD0", "h", ":"),
    "ofan_jsq_start": ("#3D0F52", "*", ":"),
}
OTHERS = cycle(("#444444", "#999999"))
BOUND = "#c00000"
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
    "svg.fonttype": "path",
    "figure.dpi": 100,
    "savefig.dpi": 200,
}
INCREASE = "CCT increase over the bound (%)"


def panel(
    width: float = PANEL[0], height: float = PANEL[1], columns: int = 1
) -> tuple[Picture, Any]:
    """Return a new picture and its axes (an array if there are several columns), in our style."""
    with mpl.rc_context(STYLE):
        picture = Picture(figsize=(width * columns, height))
        axes = picture.subplots(1, columns)

    return picture, axes


def label(policy: str) -> str:
    """Return the paper's name of a load balancer."""
    return POLICIES[policy].label if policy in POLICIES else policy


def colour(policy: str) -> str:
    """Return a load balancer's colour."""
    return LOOK[policy][0] if policy in LOOK else next(OTHERS)


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
    """Draw a load balancer's line with 95 % intervals."""
    ink, marker, dashes = LOOK.get(policy, (next(OTHERS), ".", "-"))
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
    halves = [_half(point, scale) for point in points.values()]
    axes.errorbar(list(points), means, yerr=halves, elinewidth=0.8, **settings)


def _half(point: Estimate, scale: float) -> float:
    return 0 if isnan(point.half) else scale * point.half


def lines(
    axes: Any, frame: pl.DataFrame, x: str, y: str, policies: Sequence[str], scale: float = 1
) -> None:
    """Draw y over x for every load balancer that has runs, with 95 % intervals over seeds."""
    for policy in policies:
        rows = frame.filter(pl.col("policy") == policy)
        if len(rows):
            line(axes, policy, estimates(rows, y, x), scale)


def bars(axes: Any, points: Mapping[str, Estimate], scale: float = 1, digits: int = 1) -> None:
    """Draw a bar per load balancer with its 95 % interval and value."""
    top = max(
        scale * point.mean + min(_half(point, scale), 0.6 * scale * point.mean)
        for point in points.values()
    )

    for place, (policy, point) in enumerate(points.items()):
        half = _half(point, scale)
        axes.bar(
            place,
            scale * point.mean,
            yerr=half,
            color=colour(policy),
            edgecolor="#333333",
            linewidth=0.5,
            width=0.75,
        )

        text = f"{scale * point.mean:.{digits}f}"
        height = min(scale * point.mean + half, top)
        axes.annotate(
            text,
            (place, height),
            (0, 2),
            textcoords="offset points",
            ha="center",
            fontsize=7,
            bbox=PLATE,
        )

    axes.set_ylim(0, top * 1.1)
    axes.set_xticks(
        range(len(points)),
        [label(policy) for policy in points],
        rotation=40,
        ha="right",
        rotation_mode="anchor",
    )


def increase_bars(
    frame: pl.DataFrame, policies: Sequence[str], width: float = PANEL[0], height: float = PANEL[1]
) -> Picture:
    """Return a bar chart of the load balancers' CCT increase."""
    picture, axes = panel(width, height)
    found = estimates(frame, "increase", "policy")
    bars(axes, {policy: found[policy] for policy in policies}, scale=100)
    axes.set_ylabel(INCREASE)

    return picture


def increase_lines(frame: pl.DataFrame, x: str, text: str, policies: Sequence[str]) -> Picture:
    """Return the load balancers' CCT increase over a column of powers of two, which `text` names."""
    picture, axes = panel()
    lines(axes, frame, x, y="increase", policies=policies, scale=100)
    powers_of_two(axes, sorted(frame[x].unique()))
    axes.set_ylim(bottom=0)
    axes.set_xlabel(text)
    axes.set_ylabel(INCREASE)
    axes.legend()

    return picture


def powers_of_two(axes: Any, ticks: Sequence[int], names: Sequence[str] | None = None) -> None:
    """Make the x axis logarithmic with these ticks and no others."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(ticks), list(names or map(str, ticks)))
    axes.minorticks_off()


def legend_above(picture: Picture, axes: Any, columns: int = 3) -> None:
    """Put the legend of one axes above the picture."""
    handles, labels = axes.get_legend_handles_labels()
    with mpl.rc_context(STYLE):
        picture.legend(handles, labels, loc="outside upper center", ncols=columns)
