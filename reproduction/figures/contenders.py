"""The paper's load balancers as one table: contenders and models (tables 1 to 3)."""

import polars as pl

from fattree.policies import PAPER_POLICIES
from reproduction.report.figure import Data, Figure

# Table 3 of section 6.1: the contender that each model stands for, and its simplification.
SIMPLIFIES = {
    "simple_rr": "Switch Pkt without a new order",
    "jsq": "Switch Pkt AR without quantisation",
    "rsq": "Switch Pkt AR with one quantum",
}
# Theorems 1 to 4; `fattree.policies` has none for schemes that no theorem is about.
LAWS = {"linear": "Θ(m)", "sqrt(m)": "Ω(√m)", "constant": "Θ(1)", "": ""}


def table(data: Data) -> pl.DataFrame:
    """Return a row for each load balancer."""
    # Rows are those of the code that runs, so the table cannot promise a scheme that is not there.
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
            for row in PAPER_POLICIES.values()
        ]
    )


FIGURE = Figure(
    name="contenders",
    title="The load balancers",
    paper="Tables 1 to 3, sections 3 to 6",
    caption=(
        "What chooses a packet's path and what it remembers; growth of the average queue by "
        "theorems 1 to 4."
    ),
    table=table,
)
