"""A heat map: load balancers by their place, conditions beside each other, a number in each cell.

900 pixels wide, so that the numbers can be read where a page shows it whole.
"""

from math import isfinite
from statistics import fmean

import matplotlib as mpl
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from fattree.texts.looks import ALERT, SLATES
from sim.choice.advice import Ground

# At 150 dots an inch.
WIDTH = 6.0
ROW = 0.27
HEAD = 1.15
# Below and above, cells have the lightest and the darkest colour.
LEAST, MOST = 1.0, 300.0
DARK = 60.0
NOT_ENDING = "never"
HEAT = LinearSegmentedColormap.from_list(
    "heat", ["#f7f7f2", "#f3dfa2", "#e59e4a", "#c1502e", "#5c1a1b"]
)


def heat_map(ground: Ground) -> Figure:
    """Return the picture: time over the bound in percent, the worst condition of a row framed."""
    places = ground.places()
    conditions = list(ground.conditions)
    with mpl.rc_context({"font.size": 7.5}):
        figure = Figure(figsize=(WIDTH, HEAD + ROW * len(places)), layout="constrained")
        axes = figure.subplots()

    norm = LogNorm(LEAST, MOST, clip=True)
    for row, standing in enumerate(places):
        for column, condition in enumerate(conditions):
            values = ground.times[standing.name].get(condition)
            if not values:
                continue

            mean = fmean(values)
            colour = HEAT(norm(max(mean, LEAST))) if isfinite(mean) else SLATES[0]
            is_worst = condition == standing.condition
            axes.add_patch(
                Rectangle((column, row), 1, 1, facecolor=colour, edgecolor="white", linewidth=1)
            )
            if is_worst:
                frame = Rectangle(
                    (column + 0.04, row + 0.06), 0.92, 0.88, fill=False, edgecolor=ALERT, lw=1.2
                )
                axes.add_patch(frame)

            axes.text(
                column + 0.5,
                row + 0.5,
                number(mean),
                ha="center",
                va="center",
                size=7.5,
                color="white" if not isfinite(mean) or mean > DARK else "black",
                weight="bold" if is_worst else "normal",
            )

    axes.set_xlim(0, len(conditions))
    axes.set_ylim(len(places), 0)
    axes.set_xticks(
        [column + 0.5 for column in range(len(conditions))],
        [ground.conditions[name].heading for name in conditions],
    )
    axes.set_yticks(
        [row + 0.5 for row in range(len(places))],
        [ground.label(standing.name) for standing in places],
    )
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)

    axes.set_xlabel(
        "CCT over the bound (%), mean of workloads and seeds; framed: a row's worst condition",
        fontsize=7.5,
    )
    return figure


def number(mean: float) -> str:
    """Return the text of a cell."""
    if not isfinite(mean):
        return NOT_ENDING

    return f"{mean:.1f}" if mean < 10 else f"{mean:.0f}"
