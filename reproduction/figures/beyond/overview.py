"""Ofan's lead in every setting of this report, from runs of the other figures."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import polars as pl

from fattree.experiment.model import Scenario
from fattree.texts.looks import SLATES
from reproduction.figures.beyond import collectives, controls, fabrics, faults, training
from reproduction.figures.beyond.shared import CHOSEN, NO_ROTATION, ROTATIONS
from reproduction.report import schemes, style
from reproduction.report.figure import Data, Figure, Preset, slug
from reproduction.report.schemes import difference, percent
from reproduction.report.statistics import Estimate

FIRST = "sending_increase"
WHOLE = "increase"
# From which of a module's parts, and by which column.
SETTINGS: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(fabrics.FABRICS, (fabrics, FIRST)),
    **dict.fromkeys(collectives.PARTS, (collectives, WHOLE)),
    **dict.fromkeys(training.PARTS, (training, WHOLE)),
    **dict.fromkeys(faults.PARTS, (faults, FIRST)),
    **{controls.part(controls.PERMUTATION, name): (controls, FIRST) for name in controls.CONTROLS},
    **{controls.part(controls.INCAST, name): (controls, FIRST) for name in controls.SLOWING},
}
LEADS = {"best that does not rotate": NO_ROTATION, "best other rotation": ROTATIONS}
LOOKS = {
    "best that does not rotate": {"color": SLATES[1], "fmt": "s"},
    "best other rotation": {"color": SLATES[3], "fmt": "o"},
}
# Of settings, by the module that has their runs.
GROUPS = {
    fabrics: "a permutation, by fabric",
    collectives: "collectives, by where ranks are",
    training: "training steps",
    faults: "faults and routes that follow",
    controls: "congestion control",
}
# In points: below, the axis is linear; above, it is logarithmic.
LINEAR = 1


def scenarios(preset: Preset) -> list[Scenario]:
    """Return the runs of the other figures that have a setting's name, of fabrics a size."""
    names = {slug(name) for name in SETTINGS}
    selected = []
    for module in dict.fromkeys(module for module, _ in SETTINGS.values()):
        runs = [run for run in module.scenarios(preset) if run.name in names]
        middle = {
            name: sorted({run.tree.hosts for run in runs if run.name == name})[:2][-1]
            for name in {run.name for run in runs}
        }
        selected += [
            run for run in runs if run.policy in CHOSEN and run.tree.hosts == middle[run.name]
        ]

    return selected


def leads(data: Data) -> Iterator[tuple[str, str, str, Estimate]]:
    """Return each setting, kind of others, the best of them, and how far it is behind Ofan."""
    for name, rows in data.parts(*SETTINGS).items():
        column = SETTINGS[name][1]
        for kind, policies in LEADS.items():
            present = [policy for policy in policies if policy in rows["policy"].unique()]
            best = schemes.order(rows, present, column)[0]
            yield name, kind, best, difference(rows, best, "ofan", column)


def draw(data: Data) -> dict[str, Any]:
    """Draw a row for each setting, the lead to the right of 0."""
    all_leads = list(leads(data))
    settings = list(dict.fromkeys(name for name, *_ in all_leads))
    places, headings = _rows(settings)
    lowest = max(places.values())
    picture, axes = style.panel(5.2, 1.1 + 0.2 * lowest)
    for kind, look in LOOKS.items():
        gaps = [(name, gap) for name, which, _, gap in all_leads if which == kind]
        axes.errorbar(
            [100 * gap.mean for _, gap in gaps],
            [places[name] for name, _ in gaps],
            xerr=[100 * gap.whisker for _, gap in gaps],
            label=kind,
            markersize=4.5,
            linestyle="none",
            elinewidth=0.8,
            markeredgecolor="#333333",
            markeredgewidth=0.4,
            **look,
        )

    axes.axvline(0, color=style.BOUND, linewidth=0.9)
    axes.set_xscale("symlog", linthresh=LINEAR, linscale=0.6)
    ticks = (-100, -10, -1, 0, 1, 10, 100)
    low, high = axes.get_xlim()
    shown = [tick for tick in ticks if low <= tick <= high]
    axes.set_xticks(shown, [f"{tick}".replace("-", "−") for tick in shown])
    axes.minorticks_off()
    axes.grid(visible=True, axis="x")
    axes.set_yticks(list(places.values()), settings)
    axes.set_ylim(lowest + 0.6, -0.6)
    axes.set_xlim(low, high)
    axes.axvspan(0, high, color=style.colour("ofan"), alpha=0.07, linewidth=0, zorder=0)
    for row, heading in headings.items():
        axes.annotate(
            heading,
            (0, row),
            (-4, 0),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            ha="right",
            va="center",
            fontweight="bold",
        )

    axes.set_xlabel("others' CCT less Ofan's, in % of the bound; right of 0 Ofan is faster")
    # Below all rows, where the names of settings leave room.
    axes.xaxis.set_label_coords(1, -0.035)
    axes.xaxis.label.set_ha("right")
    style.legend_above(picture, axes, columns=2)
    return {"": picture}


def _rows(settings: Sequence[str]) -> tuple[dict[str, int], dict[int, str]]:
    """Return the row of each setting, and the rows of the groups' headings above them."""
    places: dict[str, int] = {}
    headings: dict[int, str] = {}
    for module, settings_of_group in groupby(settings, key=lambda name: SETTINGS[name][0]):
        headings[len(places) + len(headings)] = GROUPS[module]
        for name in settings_of_group:
            places[name] = len(places) + len(headings)

    return places, headings


def table(data: Data) -> pl.DataFrame:
    """Return the leads as numbers."""
    return pl.DataFrame(
        [
            {
                "setting": name,
                "others": kind,
                "best of them": style.label(best),
                "its increase less Ofan's": percent(gap, 2),
                "seeds": gap.count,
            }
            for name, kind, best, gap in leads(data)
        ]
    )


FIGURE = Figure(
    name="overview",
    title="Where Ofan's advantage holds, shrinks or turns",
    paper="all figures below",
    caption=(
        "CCT of the best other scheme less that of Ofan, in % of the bound, with intervals of "
        "paired differences: in the shaded half Ofan is faster. The best is the one with the "
        "lowest mean in that setting, which favours the others a little."
    ),
    scenarios=scenarios,
    draw=draw,
    table=table,
)
