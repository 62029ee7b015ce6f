"""The load balancers of the paper, as tables: the contenders and the modelled ones (tables 1 to 3)."""

from typing import Any

import polars as pl

from fattree.policies import POLICIES
from sim.report.figure import Data, Figure, Preset

SIMPLIFIES = {
    "simple_rr": "Switch Pkt without a new order",
    "jsq": "Switch Pkt AR without quantisation",
    "rsq": "Switch Pkt AR with one quantum",
}
LAWS = {"linear": "Θ(m)", "sqrt(m)": "Ω(√m)", "constant": "Θ(1)", "": ""}


def table(data: Data) -> pl.DataFrame:
    """Return a row for each load balancer."""
    return pl.DataFrame(
        [
            {
                "load balancer": row.label,
                "chosen by the": row.where,
                "state": row.state,
                "queue after m packets": LAWS[row.queue_law],
                "simplifies": SIMPLIFIES.get(row.slug, ""),
                "P4 program": row.program,
            }
            for row in POLICIES.values()
        ]
    )


def scenarios(preset: Preset) -> list[Any]:
    """Return nothing: the table is that of `fattree.policies`."""
    return []


FIGURE = Figure(
    name="contenders",
    title="The load balancers",
    paper="tables designspace, contenders and models, sections 3 to 5",
    caption=(
        "What chooses a packet's path and what it remembers; growth of the average queue by "
        "theorems 1 to 4."
    ),
    scenarios=scenarios,
    draw=lambda data: {},
    table=table,
)
