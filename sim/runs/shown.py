"""A result in a notebook: a line, and a table."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from fattree.records.record import PERCENTILES
from fattree.units import time_unit

if TYPE_CHECKING:
    from sim.runs.results import Result


def title(result: Result) -> str:
    """Return the name of a result's run."""
    scenario = result.scenario
    return f"{scenario.balancer_label}, {scenario.tree.label}, seed {scenario.seed}"


def line(result: Result) -> str:
    """Return a result in a line."""
    values = ", ".join(f"{name} {value}" for name, value in _rows(result)[:4])
    return f"Result({title(result)}: {values})"


def html(result: Result) -> str:
    """Return a result as an HTML table, with units."""
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td style='text-align:right'>{escape(value)}</td></tr>"
        for name, value in _rows(result)
    )
    return f"<table><caption>{escape(title(result))}</caption>{rows}</table>"


def _rows(result: Result) -> list[tuple[str, str]]:
    """Return the names and values of a result, the most important ones first."""
    record = result.record
    unit, unit_ps = time_unit([record.cct_ps])
    times = result.done_ps - result.start_ps
    return [
        ("CCT", f"{record.cct_ps / unit_ps:.3f} {unit}"),
        ("over the bound", f"{100 * record.increase:.1f} %"),
        ("longest queue", f"{record.max_queue_packets:.1f} packets"),
        ("drops", f"{record.dropped:,}"),
        ("lost", f"{record.lost_to_failure:,}"),
        *(
            (f"p{share:g} of flows' times", f"{np.percentile(times, share) / unit_ps:.3f} {unit}")
            for share in PERCENTILES.values()
        ),
        ("flows", f"{len(result.flows):,}"),
        ("packet-hops", f"{record.packet_hops:,}"),
        ("processor time", f"{record.cpu_s:.2f} s"),
    ]
