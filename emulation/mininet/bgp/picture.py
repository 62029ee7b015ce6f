"""The times of all switches after failures of links, as a picture."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from emulation.errors import UnsupportedError
from emulation.mininet.bgp.convergence import Change

# The kinds of links, by the first letters of their names, and colors that the color-blind tell
# apart (Okabe and Ito).
KINDS = {"edge": ("an edge's link", "#0072B2"), "agg": ("a core's link", "#D55E00")}
SUFFIXES = (".png", ".svg", ".pdf")


def draw_times(changes: Sequence[Change], file: Path) -> None:
    """Draw the share of switches that have their last route, over time; a panel for each way.

    Raises UnsupportedError for a file of another kind.
    """
    if file.suffix not in SUFFIXES:
        raise UnsupportedError(f"--figure {file}: a picture is one of {', '.join(SUFFIXES)}")

    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(8.4, 3.2), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        for axes, is_up in zip(panels, (False, True), strict=True):
            _draw_panel(axes, [change for change in changes if change.is_up is is_up])
            axes.set_title("links come back" if is_up else "links fail", loc="left")
            axes.set_xlabel("time after the change of the links (ms)")

        panels[0].set_ylabel("switches with their last route")
        panels[0].yaxis.set_major_formatter("{x:.0f} %")
        panels[0].legend(frameon=False, loc="lower right")
        figure.savefig(file, dpi=160)


def _draw_panel(axes: Axes, changes: Sequence[Change]) -> None:
    for prefix, (label, color) in KINDS.items():
        times = sorted(
            time
            for change in changes
            if change.links[0].startswith(prefix)
            for time in change.took_ms
        )
        if times:
            shares = 100 * np.arange(1, len(times) + 1) / len(times)
            axes.step(times, shares, where="post", color=color, label=label)

    axes.set_xlim(left=0)
    axes.set_ylim(0, 101)
    axes.grid(color="#dddddd", linewidth=0.6)
