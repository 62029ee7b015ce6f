"""A sweep as a picture: a line for each load balancer over a swept key, a panel for each case."""

import re
from collections.abc import Sequence
from itertools import pairwise, product
from math import ceil
from statistics import mean, stdev
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from fattree.experiment.model import Scenario
from fattree.records.record import Record
from fattree.texts.looks import GRID, looks_of
from sim.errors import SimulationError
from sim.sweeps.tables import Runs, heading, in_words, left_out, shown_keys, values_of

MOST_PANELS = 9
# Of so many panels in two rows or three, as near to a square as can be.
COLUMNS = {1: 1, 2: 2, 3: 3, 4: 2}
# Steps of a key that doubles are as far apart as steps of a key that grows by the same amount.
DOUBLING = 1.9
# Values that are nearer to each other than this share of an axis are written aslant.
CLOSE = 0.1
MACROS = "defines."
# Load balancers that differ by more than so many times share no linear axis: the lower ones would
# be one line at its bottom.
MOST_TIMES = 20
INCREASE = "CCT over the bound (%)"
STYLE = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
BYTES = "_bytes"
SIZES = (
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 10**9),
    ("MB", 10**6),
    ("KB", 10**3),
)


def sweep_figure(runs: Runs, leave_out: Sequence[str] = ()) -> Figure:
    """Return CCT over the bound (%), over the swept key with most values; whiskers: over seeds.

    The other swept keys' values are panels of one scale. Where nothing was swept, the load
    balancers stand side by side. `leave_out` names load balancers that are not drawn. Raises
    SimulationError for an unknown name, and for more than fits a picture.
    """
    missing = left_out((scenario.balancer for scenario, _ in runs), leave_out)
    runs = [run for run in runs if run[0].balancer not in missing]
    keys = shown_keys(runs)
    if not keys:
        return _side_by_side(runs)

    along = max(keys, key=lambda key: len(_distinct(runs, key)))
    fixed_keys = [key for key in keys if key != along]
    cases = [
        case
        for case in product(*(_distinct(runs, key) for key in fixed_keys))
        if any(_is_of(scenario, fixed_keys, case) for scenario, _ in runs)
    ]
    if len(cases) > MOST_PANELS:
        raise SimulationError(
            f"{len(cases)} cases beside {along} are more panels than a figure has ({MOST_PANELS}): "
            "sweep fewer keys, or draw from --csv"
        )

    places = _places(_distinct(runs, along))
    columns = COLUMNS.get(len(cases), 3)
    rows = ceil(len(cases) / columns)
    # A picture of its own, not pyplot's: nothing to close, and no display to look for.
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(4.2 * columns + 0.6, 3.1 * rows + 0.6), layout="constrained")
        grid = figure.subplots(rows, columns, sharey=True, squeeze=False)

    for axes, case in zip(grid.flat, cases, strict=False):
        alike = [run for run in runs if _is_of(run[0], fixed_keys, case)]
        _draw(axes, alike, along, places)
        said = (
            f"{_titled(key)} {_worded(key, value)}"
            for key, value in zip(fixed_keys, case, strict=True)
        )
        axes.set_title(", ".join(said), fontsize=9)

    for axes in grid.flat[len(cases) :]:
        axes.set_axis_off()

    for axes in grid[:, 0]:
        axes.set_ylabel(INCREASE)

    # Below each panel that has none below it.
    for axes in grid.flat[max(0, len(cases) - columns) : len(cases)]:
        axes.set_xlabel(_titled(along))

    # All panels have this axis.
    _scale(grid[0, 0], _means(runs, keys))

    handles = {line.get_label(): line for axes in grid.flat for line in axes.containers}
    figure.legend(
        handles.values(),
        handles.keys(),
        title=_whiskers(runs),
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )

    return figure


def _side_by_side(runs: Runs) -> Figure:
    """Return the load balancers' mean CCT over the bound (%), each with its whisker."""
    labels = {record.policy: scenario.balancer_label for scenario, record in runs}
    looks = looks_of(list(labels))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(2.2 + 0.55 * len(labels), 3.7), layout="constrained")
        axes = figure.subplots()

    for column, (policy, (colour, marker, _)) in enumerate(looks.items()):
        middle, deviation = _percent([record for _, record in runs if record.policy == policy])
        axes.errorbar(
            column, middle, yerr=deviation, color=colour, marker=marker, markersize=6, capsize=2
        )
        axes.annotate(
            f"{middle:.1f}", (column, middle), (7, 0), textcoords="offset points", va="center"
        )

    axes.set_xticks(range(len(labels)), list(labels.values()), rotation=40, ha="right")
    axes.set_xlim(-0.6, len(labels) - 0.2)
    axes.set_ylabel(INCREASE)
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_title(_whiskers(runs), fontsize=9)
    _scale(axes, _means(runs, []))
    return figure


def _means(runs: Runs, keys: Sequence[str]) -> list[float]:
    """Return the mean over seeds of each load balancer in each case of the keys."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for scenario, record in runs:
        case = tuple(values_of(scenario, keys).values())
        groups.setdefault((record.policy, *case), []).append(record)

    return [_percent(records)[0] for records in groups.values()]


def _scale(axes: Axes, means: Sequence[float]) -> None:
    """Let the y axis begin at 0, or be logarithmic where means differ by MOST_TIMES and more."""
    above = [value for value in means if value > 0]
    if not above or max(above) <= MOST_TIMES * min(above):
        if min(means) >= 0:
            axes.set_ylim(bottom=0)

        return

    if len(above) == len(means):
        axes.set_yscale("log")
        axes.set_ylim(0.6 * min(above), 1.8 * max(above))
    # Nothing over the bound has no logarithm: the axis is linear around 0.
    else:
        axes.set_yscale("symlog", linthresh=max(min(above), max(above) / 1000))

    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _titled(key: str) -> str:
    """Return a swept key as an axis names it, sizes without their unit."""
    return heading(key).removesuffix(BYTES)


def _worded(key: str, value: Any) -> str:
    """Return a swept value as an axis has it: sizes as 64 KiB."""
    return (
        size_in_words(value) if key.endswith(BYTES) and isinstance(value, int) else in_words(value)
    )


def size_in_words(size: int) -> str:
    """Return a size as people read it: 64 KiB, 800 KB, 4,178 B."""
    whole = ((unit, factor) for unit, factor in SIZES if size and size % factor == 0)
    unit, factor = next(whole, ("B", 1))
    return f"{size // factor:,} {unit}"


def _draw(axes: Axes, runs: Runs, along: str, places: dict[Any, float]) -> None:
    looks = looks_of(list(dict.fromkeys(record.policy for _, record in runs)))
    labels = {record.policy: scenario.balancer_label for scenario, record in runs}

    for policy, (colour, marker, line) in looks.items():
        by_value: dict[Any, list[Record]] = {}
        for scenario, record in runs:
            if record.policy == policy:
                by_value.setdefault(_value(scenario, along), []).append(record)

        # Runs without the swept macro are the same for all its values: a level line.
        if None in by_value and None not in places:
            by_value = dict.fromkeys(places, by_value[None])

        points = sorted((places[value], _percent(records)) for value, records in by_value.items())
        axes.errorbar(
            [x for x, _ in points],
            [middle for _, (middle, _) in points],
            yerr=[deviation for _, (_, deviation) in points],
            color=colour,
            marker=marker,
            linestyle=line,
            linewidth=1.3,
            markersize=4.5,
            elinewidth=0.8,
            capsize=2,
            label=labels[policy],
        )

    axes.set_xticks(list(places.values()), [_worded(along, value) for value in places])
    axes.tick_params(axis="x", labelrotation=60 * _are_close(list(places.values())))
    axes.grid(axis="y", color=GRID, linewidth=0.6)


def _percent(records: Sequence[Record]) -> tuple[float, float]:
    """Return the mean and the standard deviation over seeds of the time above the bound."""
    values = [100 * record.increase for record in records]
    return mean(values), stdev(values) if len(values) > 1 else 0.0


def _whiskers(runs: Runs) -> str:
    seeds = len({record.seed for _, record in runs})
    return f"means of {seeds} seeds, whiskers: standard deviation" if seeds > 1 else "one seed"


def _are_close(places: Sequence[float]) -> bool:
    """Return whether numbers below an axis, written level, would touch."""
    steps = [high - low for low, high in pairwise(sorted(places))]
    return bool(steps) and min(steps) < CLOSE * sum(steps)


def _places(values: Sequence[Any]) -> dict[Any, float]:
    """Return where each value of the swept key stands: by its size, or side by side.

    Numbers that double stand side by side too, as on a logarithmic axis.
    """
    is_number = all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in values
    )
    if not is_number:
        return {value: float(x) for x, value in enumerate(values)}

    ordered = sorted(values)
    doubles = all(high >= DOUBLING * low > 0 for low, high in pairwise(ordered))
    return {value: float(x) if doubles else float(value) for x, value in enumerate(ordered)}


def _distinct(runs: Runs, key: str) -> list[Any]:
    """Return the values of a key; a macro has none in runs of our load balancers."""
    values = list(dict.fromkeys(_value(scenario, key) for scenario, _ in runs))
    return [value for value in values if value is not None or not key.startswith(MACROS)]


def _is_of(scenario: Scenario, keys: Sequence[str], case: Sequence[Any]) -> bool:
    """Return whether a run belongs into the panel of a case; one without a macro into all."""
    return all(
        value == case_value or (value is None and key.startswith(MACROS))
        for key, case_value, value in zip(
            keys, case, (_value(scenario, key) for key in keys), strict=True
        )
    )


def _value(scenario: Scenario, key: str) -> Any:
    value = values_of(scenario, [key])[key]
    # Macros are text, numbers mostly.
    is_number = key.startswith(MACROS) and re.fullmatch(r"-?\d{1,15}", str(value))
    return int(value) if is_number else value
