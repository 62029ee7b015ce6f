"""Pictures of finished runs: link loads, queues over time, completion times.

A load balancer has one look in all of them (`fattree.texts.looks`).
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec, SubplotSpec
from numpy.typing import NDArray

from emulation.outcomes.outcome import Outcome, label_of
from fattree.records.record import PERCENTILES, Record
from fattree.shape.addressing import link_name, link_named
from fattree.shape.topology import SWITCH_LAYERS
from fattree.texts.looks import ALERT, GRID, SLATES, looks_of
from fattree.units import PS_PER_US, time_unit

GREY = "#666666"
LAYER_COLOURS = dict(zip(SWITCH_LAYERS, SLATES, strict=True))
KB = 1_000
MOST_COLUMNS = 4
# Of a layer of more links a picture has an area.
MOST_BARS = 128
MEAN = "mean of the layer"
LAYER_NAMES = (
    "E>A: uplinks of edges, A>C: uplinks of aggregations, C>A: downlinks of cores,"
    " A>E: downlinks of aggregations"
)
SHORT_NAMES = "E edge, A aggregation, C core; E>A: uplinks of edges"
QUEUES = "longest queue of any switch port (packets)"
# Of numpy's arrays, one value a flow.
Times = NDArray[np.int64]


def save(figure: Figure, folder: Path, stem: str) -> list[Path]:
    """Write a figure as PNG and SVG; return the files."""
    paths = [folder / f"{stem}.png", folder / f"{stem}.svg"]
    for path in paths:
        figure.savefig(path, dpi=150)

    return paths


def tidy(axes: Axes) -> None:
    """Remove lines that carry no information."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def draw_loads(axes: Axes, outcome: Outcome, title: str) -> None:
    """Draw the load of every directed inter-switch link, layer by layer, each layer sorted.

    A line marks its mean.
    """
    start = 0
    for layer, ports in outcome.inter_switch().items():
        # Sorted: it is how unequal loads are that counts, not which link has which.
        loads = sorted((port.bytes / KB for port in ports), reverse=True)
        places = start + np.arange(len(loads))
        if len(loads) <= MOST_BARS:
            axes.bar(places, loads, width=0.85, color=LAYER_COLOURS[layer])
        else:
            # Bars that are narrower than a pixel would take half a minute.
            edges = np.append(places, places[-1] + 1) - 0.5
            heights = [*loads, loads[-1]]
            axes.fill_between(edges, heights, step="post", color=LAYER_COLOURS[layer], linewidth=0)

        mean = sum(loads) / len(loads)
        axes.plot(
            [start - 0.5, places[-1] + 0.5],
            [mean, mean],
            color="black",
            linewidth=1,
            label=MEAN if start == 0 else None,
        )

        axes.text(
            places.mean(),
            -0.02,
            layer,
            ha="center",
            va="top",
            fontsize=8,
            transform=axes.get_xaxis_transform(),
        )

        # A gap of two bars between layers.
        start = int(places[-1]) + 3

    axes.set_xticks([])
    axes.set_title(title, fontsize=9)
    tidy(axes)


def draw_queues(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    """Draw queues over time, or their known lengths where there are no samples over time."""
    if all(outcome.samples.times_ps for outcome in outcomes):
        _draw_queues_over_time(axes, outcomes)
        mark_buffer(axes, outcomes)
        axes.legend(fontsize=8, frameon=False)
        mark_failures(axes, outcomes[0])
    elif all(outcome.reports_queues for outcome in outcomes):
        _draw_longest_queues(axes, outcomes)
        mark_buffer(axes, outcomes)
        axes.legend(fontsize=8, frameon=False)
    else:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "queues: not reported by these switches", ha="center", fontsize=9)


def packet_of(outcome: Outcome) -> int:
    """Return the bytes of a data packet, in which queues are drawn."""
    return outcome.scenario.data_bytes


def mark_buffer(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    """Draw a line at the packets that a port holds, where queues come near to it."""
    fabric = outcomes[0].scenario.fabric
    # Shared memory has no such length, and with pauses it is that of an input.
    if fabric.buffer == "shared" or fabric.flow_control == "pfc":
        return

    capacity = fabric.queue_bytes // packet_of(outcomes[0])
    top = axes.get_ylim()[1]
    if 0 < capacity < 2 * top:
        axes.set_ylim(top=max(top, 1.1 * capacity))
        axes.axhline(capacity, color=ALERT, linewidth=1, linestyle=(0, (4, 2)), zorder=0.8)
        axes.text(
            1,
            capacity,
            f"buffer: {capacity}",
            color=ALERT,
            fontsize=8,
            ha="right",
            va="bottom",
            transform=axes.get_yaxis_transform(),
        )


def _draw_longest_queues(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    """Draw each layer's longest queue over the whole run: a group of bars a layer."""
    width = 0.8 / len(outcomes)
    looks = looks_of([outcome.policy for outcome in outcomes])
    for index, outcome in enumerate(outcomes):
        places = np.arange(len(SWITCH_LAYERS)) + (index - (len(outcomes) - 1) / 2) * width
        axes.bar(
            places,
            [outcome.max_queue_bytes(layer) / packet_of(outcome) for layer in SWITCH_LAYERS],
            width=0.9 * width,
            color=looks[outcome.policy].colour,
            label=label_of(outcome.policy),
        )

    axes.set_xticks(range(len(SWITCH_LAYERS)), SWITCH_LAYERS)
    axes.set_xlabel("of the whole run: real queues are not looked at over time", fontsize=9)
    axes.set_ylabel(QUEUES, fontsize=9)
    tidy(axes)


def _draw_queues_over_time(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    """Draw the longest queue in front of any switch port over time, one line a scheme."""
    looks = looks_of([outcome.policy for outcome in outcomes])
    for outcome in outcomes:
        times = np.array(outcome.samples.times_ps) / PS_PER_US
        longest = np.array([max(sample) for sample in outcome.samples.bytes]) / packet_of(outcome)
        colour, _, line = looks[outcome.policy]
        axes.plot(times, longest, line, color=colour, linewidth=1.6, label=label_of(outcome.policy))
        # The last sample stands for the end of the run, when the collective is complete.
        axes.plot(
            times[-1:], longest[-1:], "o", color=colour, markersize=5, clip_on=False, zorder=3
        )

    axes.set_xlabel("time (µs)", fontsize=9)
    axes.set_ylabel(QUEUES, fontsize=9)
    # Another panel of the same axis may last longer.
    axes.set_xlim(left=0, auto=True)
    axes.set_ylim(bottom=0)
    tidy(axes)


def cdf_figure(times: Mapping[str, Times], quantity: str) -> Figure:
    """Return the distribution of flow completion times, ps, by load balancer; of flows `what`.

    Dashed lines are at the PERCENTILES that tables have.
    """
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    unit, unit_ps = time_unit([values.max() for values in times.values()])
    looks = looks_of(list(times))
    for policy, values in times.items():
        colour, _, line = looks[policy]
        ordered = np.sort(values) / unit_ps
        shares = 100 * np.arange(1, len(ordered) + 1) / len(ordered)
        axes.step(
            np.concatenate((ordered[:1], ordered)),
            np.concatenate(((0,), shares)),
            line,
            where="post",
            color=colour,
            linewidth=1.6,
            label=label_of(policy),
        )

    axes.set_xlabel(f"flow completion time, from when the flow could start ({unit})", fontsize=9)
    axes.set_ylabel("flows complete (%)", fontsize=9)
    axes.set_yticks([0, 25, 75, *list(PERCENTILES.values())[:2]])
    axes.set_ylim(0, 102)
    axes.set_title(quantity, fontsize=9)
    tidy(axes)
    axes.legend(fontsize=8, frameon=False, loc="lower right")
    return figure


def mark_failures(axes: Axes, outcome: Outcome) -> None:
    """Draw when links fail and when routes change, as far as that is within the picture."""
    scenario = outcome.scenario
    # Only once everything else is drawn: marks stay within the limits that data has set.
    top = axes.get_ylim()[1]
    for event in scenario.failures.events:
        name = event.name
        if event.link is not None:
            name = link_name(scenario.tree, link_named(scenario.tree, event.link))

        down_us = event.down_ns / 1_000
        _mark(axes, down_us, f"{name} fails", top)

        if scenario.convergence_ps is not None:
            _mark(axes, down_us + scenario.convergence_ps / PS_PER_US, "routes change", top)


def _mark(axes: Axes, time_us: float, text: str, top: float) -> None:
    if time_us > axes.get_xlim()[1]:
        return

    axes.axvline(time_us, color=GREY, linewidth=1, linestyle=(0, (2, 2)), zorder=1)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    axes.text(time_us, top, text, fontsize=8, color=GREY, va="bottom", ha="center", bbox=box)


def draw_increases(axes: Axes, records: Sequence[Record]) -> None:
    """Draw every run's increase over the bound as a dot, and each scheme's mean as a line."""
    policies = list(dict.fromkeys(record.policy for record in records))
    looks = looks_of(policies)
    for x, policy in enumerate(policies):
        increases = [100 * record.increase for record in records if record.policy == policy]
        mean = sum(increases) / len(increases)
        axes.plot([x - 0.3, x + 0.3], [mean, mean], color="black", linewidth=1.5)
        axes.plot([x] * len(increases), increases, "o", color=looks[policy].colour, alpha=0.6)
        axes.text(x + 0.08, mean, f"{mean:.1f} %", fontsize=8, va="bottom")

    axes.set_xticks(
        range(len(policies)), [label_of(policy) for policy in policies], rotation=30, ha="right"
    )
    axes.set_xlim(-0.8, len(policies) - 0.2)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("CCT increase over the bound (%)", fontsize=9)
    tidy(axes)


def seeds_of(seeds: Sequence[int], all_seeds: Sequence[int]) -> str:
    """Return which seeds a picture shows, of how many."""
    shown, every = sorted(set(seeds)), sorted(set(all_seeds))
    if len(every) == 1:
        return f"one seed ({every[0]})"

    return f"{len(every)} seeds" if shown == every else f"seed {shown[0]}, of {len(every)} seeds"


def flow_times(outcomes: Sequence[Outcome]) -> dict[str, Times]:
    """Return every flow's completion time, of all seeds, by load balancer."""
    times: dict[str, list[int]] = {}
    for outcome in outcomes:
        times.setdefault(outcome.policy, []).extend(flow.fct_ps for flow in outcome.flows)

    return {policy: np.array(values) for policy, values in times.items()}


def experiment_figures(
    outcomes: Sequence[Outcome], records: Sequence[Record]
) -> Iterator[tuple[str, Figure]]:
    """Yield (file stem, figure) of an experiment; loads and queues are those of its first seed."""
    first = [outcome for outcome in outcomes if outcome.scenario.seed == outcomes[0].scenario.seed]
    seeds = [record.seed for record in records]
    first_seed, every = seeds_of(seeds[:1], seeds), seeds_of(seeds, seeds)
    increases = Figure(figsize=(3.2 + 1.1 * len(first), 4), layout="constrained")
    draw_increases(increases.subplots(), records)
    increases.axes[0].set_title(f"dots: {every}; line: their mean", fontsize=9)
    yield "cct", increases
    yield "link_load", _loads_figure(first, first_seed)
    queues = Figure(figsize=(8, 4), layout="constrained")
    draw_queues(queues.subplots(), first)
    queues.axes[0].set_title(first_seed, fontsize=9, pad=16)
    yield "queues", queues
    yield "flow_times", cdf_figure(flow_times(outcomes), f"all flows, {every}")


def _loads_figure(outcomes: Sequence[Outcome], seeds: str) -> Figure:
    columns = min(MOST_COLUMNS, len(outcomes))
    rows = -(-len(outcomes) // columns)
    figure = Figure(figsize=(4 * columns, 3.2 * rows), layout="constrained")
    shared: Axes | None = None

    # One scale for all, so that schemes can be compared by eye.
    for number, outcome in enumerate(outcomes):
        axes = figure.add_subplot(rows, columns, number + 1, sharey=shared)
        shared = shared or axes
        draw_loads(axes, outcome, label_of(outcome.policy))

        if number % columns == 0:
            axes.set_ylabel("load of each link, sorted (KB)", fontsize=9)

    handles = [line for line in figure.axes[0].lines if line.get_label() == MEAN]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        fontsize=8,
        frameon=False,
        title=f"{LAYER_NAMES}; {seeds}" if columns > 2 else f"{SHORT_NAMES}; {seeds}",
        title_fontsize=8,
    )
    return figure


def demo_figure(before: Sequence[Outcome], after: Sequence[Outcome]) -> Figure:
    """Return the demo's picture: loads and queues over time, without and with a failing link."""
    figure = Figure(figsize=(12, 10), layout="constrained")
    seeds = seeds_of([before[0].scenario.seed], [before[0].scenario.seed])
    figure.suptitle(f"{collective_of(before[0])}; {seeds}\n{LAYER_NAMES}", fontsize=10)
    grid = figure.add_gridspec(3, len(before), height_ratios=(1, 1, 1.15))
    _demo_loads(figure, grid, (before, after))
    _demo_queues(figure, grid[2, :], (before, after))

    return figure


def queues_figure(before: Sequence[Outcome], after: Sequence[Outcome]) -> Figure:
    """Return the lower part of the demo's picture alone: queues over time."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    _demo_queues(figure, figure.add_gridspec(1, 1)[0], (before, after))

    return figure


def _demo_queues(figure: Figure, cell: SubplotSpec, rows: Sequence[Sequence[Outcome]]) -> None:
    queues = cell.subgridspec(1, 2)
    before = figure.add_subplot(queues[0])
    right = figure.add_subplot(queues[1], sharex=before, sharey=before)
    for axes, outcomes in zip((before, right), rows, strict=True):
        draw_queues(axes, outcomes)

    right.set_ylabel("")
    before.set_title("Queue over time, all links up (dot: collective complete)", fontsize=9, pad=16)
    right.set_title("Queue over time, a core link fails", fontsize=9, pad=16)


def _demo_loads(figure: Figure, grid: GridSpec, rows: Sequence[Sequence[Outcome]]) -> None:
    shared: Axes | None = None
    for row, (outcomes, word) in enumerate(
        zip(rows, ("all links up", "a core link fails"), strict=True)
    ):
        for column, outcome in enumerate(outcomes):
            axes = figure.add_subplot(grid[row, column], sharey=shared)
            shared = shared or axes
            scheme = label_of(outcome.policy)
            draw_loads(axes, outcome, f"{scheme}, {word}: CCT {outcome.cct_ps / PS_PER_US:.2f} µs")

            if column == 0:
                axes.set_ylabel(
                    "load of each link, sorted (KB)\nline: mean of the layer", fontsize=9
                )


def collective_of(outcome: Outcome) -> str:
    """Return the fabric and the collective of a run in words."""
    scenario = outcome.scenario
    matrix = scenario.matrix.replace("_", " ")
    packets = outcome.flows[0].packets
    rate = f"{scenario.fabric.rate_gbps:g} Gb/s"

    return (
        f"{scenario.tree.hosts} hosts ({scenario.tree.label}), {matrix}, "
        f"{packets} packets a flow, {rate} links"
    )
