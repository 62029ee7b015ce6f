"""Rows of the benchmark as tables, and as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.scale.planning import Row
from fattree.texts.looks import GRID, SLATES

PLAN_COLUMNS = {
    "k": "k",
    "switches": "switches",
    "entries": "entries",
    "plan_cpu_s": "plan (CPU s)",
    "made_cpu_s": "all entries made (CPU s)",
    "core_replan_cpu_s": "core link fails: re-plan (CPU s)",
    "core_updates": "updates",
    "core_switches_told": "switches",
    "core_median_updates": "median",
    "core_most_updates": "most",
    "core_longest_schedule": "longest schedule",
    "core_made_cpu_s": "updates made (CPU s)",
    "core_repair_cpu_s": "repair (CPU s)",
    "peak_mb": "memory (MB)",
}
SHAPE_COLUMNS = {
    "k": "k",
    "edge_pointers": "pointers of an edge",
    "agg_pointers": "of an agg",
    "edge_schedules": "schedules of an edge",
    "edge_rows": "their rows",
    "edge_rows_unshared": "rows unshared",
    "saving": "saving",
    "agg_rows": "rows of an agg",
    "edge_replan_cpu_s": "edge link fails: re-plan (CPU s)",
    "edge_updates": "updates",
    "edge_most_updates": "most on a switch",
}
INSTALL_COLUMNS = {
    "how": "switches",
    "switches": "number",
    "start_s": "start (s)",
    "push_s": "program (s)",
    "first_updates": "entries",
    "first_s": "first plan (s)",
    "first_cpu_s": "CPU (s)",
    "failure_updates": "updates",
    "failure_s": "core link fails (s)",
    "failure_cpu_s": "CPU (s)",
    "repair_s": "repair (s)",
    "repair_cpu_s": "CPU (s)",
}
PACKET_COLUMNS = {
    "what": "what happens",
    "sent": "packets sent",
    "lost": "lost on the link",
    "unrouted": "without a route",
}


def table(title: str, columns: dict[str, str], rows: Sequence[Row]) -> Table:
    """Return rows as a table."""
    shown = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for heading in columns.values():
        shown.add_column(heading, justify="right")

    for row in rows:
        shown.add_row(*(_cell(row.get(name)) for name in columns))

    return shown


def _cell(value: Any) -> str:
    if value is None:
        return "-"

    return (
        f"{value:,.2f}"
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )


def draw(rows: Sequence[Row], file: Path) -> None:
    """Draw CPU time and sizes over the number of switches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    times, sizes = figure.subplots(1, 2)
    switches = [row["switches"] for row in rows]
    lines = {
        times: {
            "plan_cpu_s": "first plan",
            "made_cpu_s": "all its entries made",
            "core_replan_cpu_s": "re-plan, a core link fails",
            "core_made_cpu_s": "its updates made",
        },
        sizes: {
            "entries": "entries of the fabric",
            "core_updates": "updates, a core link fails",
            "edge_rows_unshared": "schedule rows of an edge, unshared",
            "edge_rows": "the same, shared",
        },
    }

    styles = ("o-", "o--", "s-", "s--")

    for axes, chosen in lines.items():
        for (name, label), style, colour in zip(chosen.items(), styles, SLATES, strict=False):
            axes.loglog(
                switches,
                [row[name] for row in rows],
                style,
                color=colour,
                label=label,
                markersize=4,
            )

        axes.set_xticks(switches, [f"{row['switches']:,}\nk = {row['k']}" for row in rows])
        axes.minorticks_off()
        axes.set_xlabel("switches")
        axes.grid(color=GRID, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize=8, frameon=False)

    times.set_ylabel("CPU time (s)")
    sizes.set_ylabel("number")
    figure.savefig(file, dpi=150)
