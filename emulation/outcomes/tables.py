"""Results as a table for people: one row a load balancer, means over the seeds."""

from collections.abc import Sequence
from statistics import mean, stdev

from rich.console import Group

from emulation.outcomes.outcome import label_of
from fattree.records.record import FLOW_TIMES, Record, flow_times, rare_counts, sums
from fattree.records.tables import Folding
from fattree.shape.topology import SWITCH_LAYERS
from fattree.units import time_unit

# In place of a queue's length where the switch does not report it (BMv2).
NOT_REPORTED = "n. r."
# So that the tables of a group have common columns.
WIDEST = 20
# The bound has every packet wait a slot for each link, which BMv2's idle queues do not.
BELOW = "*"
BELOW_LEGEND = f"{BELOW} below the bound: this network's links take less time than the bound counts"


def results_table(groups: Sequence[tuple[str, Sequence[Record]]]) -> Group:
    """Return titled groups of records as tables in one unit of time.

    Drops and losses are sums over the seeds.
    """
    unit = time_unit([record.cct_ps for _, records in groups for record in records])
    is_below = any(record.increase < 0 for _, records in groups for record in records)
    counts = ["dropped", "lost_to_failure", *rare_counts(r for _, runs in groups for r in runs)]
    tables = (_table(title, records, *unit, counts) for title, records in groups)
    return Group(*tables, *([BELOW_LEGEND] if is_below else []))


def _table(
    title: str, records: Sequence[Record], unit: str, unit_ps: int, counts: Sequence[str]
) -> Folding:
    table = Folding(
        f"{'load balancer':{WIDEST}}",
        f"CCT ({unit})",
        "over bound",
        *(f"{name} ({unit})" for name in FLOW_TIMES),
        *SWITCH_LAYERS,
        "drops",
        "lost",
        *counts[2:],
        title=title,
    )

    for policy in dict.fromkeys(record.policy for record in records):
        runs = [record for record in records if record.policy == policy]
        table.add_row(*_row(runs, unit_ps), *sums(runs, counts))

    return table


def _row(runs: Sequence[Record], unit_ps: int) -> list[str]:
    # The longest that any seed has seen: its mean would hide the worst case.
    layers = range(len(SWITCH_LAYERS))
    queues = (
        [f"{max(run.max_queue_layers[layer] for run in runs):.1f}" for layer in layers]
        if all(run.max_queue_layers for run in runs)
        else [NOT_REPORTED] * len(layers)
    )
    return [
        label_of(runs[0].policy),
        _mean([run.cct_ps / unit_ps for run in runs], "{:.2f}"),
        _mean([100 * run.increase for run in runs], "{:.1f}") + " %" + _mark(runs),
        *flow_times(runs, unit_ps),
        *queues,
    ]


def _mark(runs: Sequence[Record]) -> str:
    """Return the mark of a row in which a run took less time than the bound."""
    return f" {BELOW}" if any(run.increase < 0 for run in runs) else ""


def _mean(values: Sequence[float], form: str) -> str:
    """Return the mean, with the standard deviation where there are several values."""
    if len(values) == 1:
        return form.format(values[0])

    # Of a sample, not of all seeds there could be.
    return f"{form.format(mean(values))} ± {form.format(stdev(values))}"
