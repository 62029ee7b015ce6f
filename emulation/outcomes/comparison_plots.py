"""Pictures that compare: one experiment on several networks, and a user's program with ours."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from emulation.outcomes.comparison import INCREASE, QUEUE, Metric, Row, verdicts
from emulation.outcomes.outcome import Outcome, label_of
from emulation.outcomes.plots import (
    LAYER_NAMES,
    collective_of,
    draw_increases,
    draw_loads,
    draw_queues,
    seeds_of,
)
from fattree.records.record import Record
from fattree.texts.looks import ALERT, GRID, SLATES

# The reference is a ring; equal values lie inside.
REFERENCE_SIZE = 11
OTHER_SIZE = 6
OTHERS = tuple(zip("oDs", SLATES[1:4], strict=True))
COLUMNS = {
    INCREASE: "CCT increase over the bound (%)",
    QUEUE: "longest queue of any switch port (packets)",
}


def networks_figure(rows: Sequence[Row]) -> Figure:
    """Return the picture of a comparison: a row a load balancer, a marker a network."""
    figure = Figure(figsize=(11, 1.9 + 0.34 * len(rows)), layout="constrained")
    run = rows[0].reference[0]
    matrix = run.matrix.replace("_", " ")
    seeds = [record.seed for record in rows[0].reference]
    fabric = run.fabric or f"k = {run.k}"
    title = f"{run.hosts} hosts ({fabric}), {matrix}, {run.message_bytes:,} B a flow"
    title += f"; {seeds_of(seeds, seeds)}"
    figure.suptitle("\n".join([title, *map(str, verdicts(rows))]), fontsize=10)
    times, queues = figure.subplots(1, 2, sharey=True)

    for axes, (metric, label) in zip((times, queues), COLUMNS.items(), strict=True):
        _draw_markers(axes, rows, metric)
        axes.set_xlabel(label, fontsize=9)

    times.set_yticks(range(len(rows)), [label_of(row.policy) for row in rows])
    # Downwards, as the table lists them.
    times.set_ylim(len(rows) - 0.5, -0.5)
    figure.legend(
        handles=_legend(rows), loc="outside lower center", ncols=4, fontsize=8, frameon=False
    )

    return figure


def _draw_markers(axes: Axes, rows: Sequence[Row], metric: Metric) -> None:
    for y, row in enumerate(rows):
        reference = metric.of(row.reference)
        axes.plot(
            reference,
            y,
            "o",
            markersize=REFERENCE_SIZE,
            markerfacecolor="white",
            markeredgecolor="black",
        )

        for (network, runs), (marker, colour) in zip(
            list(row.runs.items())[1:], OTHERS, strict=False
        ):
            # A different value is joined to the reference, however small the difference is.
            value = metric.of(runs)
            if not row.is_equal(network, [metric]):
                colour = ALERT
                axes.plot([reference, value], [y, y], color=colour, linewidth=2, zorder=1)

            axes.plot(value, y, marker, markersize=OTHER_SIZE, color=colour)

    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(labelsize=9, left=False)
    axes.grid(axis="both", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(left=min(0, axes.get_xlim()[0]))


def _legend(rows: Sequence[Row]) -> list[Line2D]:
    reference, *compared = rows[0].runs
    first = Line2D(
        [],
        [],
        marker="o",
        markersize=REFERENCE_SIZE,
        markerfacecolor="white",
        color="black",
        linestyle="",
        label=reference,
    )

    rest = [
        Line2D(
            [],
            [],
            marker=marker,
            markersize=OTHER_SIZE,
            color=colour,
            linestyle="",
            label=f"{network}, equal",
        )
        for network, (marker, colour) in zip(compared, OTHERS, strict=False)
    ]

    different = Line2D(
        [], [], marker="o", markersize=OTHER_SIZE, color=ALERT, linewidth=2, label="different"
    )
    return [first, *rest, different]


def program_figure(outcomes: Sequence[Outcome], records: Sequence[Record]) -> Figure:
    """Return the picture of a user's program and ours: loads, queues over time, increases."""
    # Of one seed: pictures show one run of each, the increases below all.
    first = [outcome for outcome in outcomes if outcome.scenario.seed == outcomes[0].scenario.seed]
    figure = Figure(figsize=(max(9.0, 3.2 * len(first)), 7.5), layout="constrained")
    seeds = [record.seed for record in records]
    shown, every = seeds_of(seeds[:1], seeds), seeds_of(seeds, seeds)
    said = shown if shown == every else f"loads and queues: {shown}; increases: {every}"
    figure.suptitle(f"{collective_of(first[0])}\n{said}\n{LAYER_NAMES}", fontsize=10)
    grid = figure.add_gridspec(2, 1)
    loads: list[Axes] = (
        grid[0].subgridspec(1, len(first)).subplots(sharey=True, squeeze=False)[0].tolist()
    )

    for axes, outcome in zip(loads, first, strict=True):
        draw_loads(axes, outcome, label_of(outcome.policy))

    loads[0].set_ylabel("load of each link, sorted (KB)\nline: mean of the layer", fontsize=9)
    below = grid[1].subgridspec(1, 2, width_ratios=(1.6, 1))
    queues = figure.add_subplot(below[0])
    increases = figure.add_subplot(below[1])
    draw_queues(queues, first)
    draw_increases(increases, records)

    return figure
