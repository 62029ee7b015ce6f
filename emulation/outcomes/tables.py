"""Results as a table for people: one row a load balancer, means over the seeds."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table

from emulation.outcomes.outcome import label_of
from fattree.record import Record
from fattree.topology import SWITCH_LAYERS
from fattree.units import PS_PER_US

# What stands for a queue's length where the switch does not tell it (BMv2).
NOT_REPORTED = "n. r."


def results_table(groups: Sequence[tuple[str, Sequence[Record]]]) -> Group:
    """Return titled groups of records as tables with common columns.

    Drops and losses are sums over the seeds.
    """
    return Group(*(_table(title, records) for title, records in groups))


def _table(title: str, records: Sequence[Record]) -> Table:
    table = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )

    table.add_column("load balancer", no_wrap=True, min_width=20)
    table.add_column("CCT (µs)", justify="right", no_wrap=True, min_width=14)
    table.add_column("over the bound", justify="right", no_wrap=True, min_width=14)

    for heading in (*SWITCH_LAYERS, "drops", "lost"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=7)

    for policy in dict.fromkeys(record.policy for record in records):
        table.add_row(*_row([record for record in records if record.policy == policy]))

    return table


def _row(runs: Sequence[Record]) -> list[str]:
    # The longest that any seed has seen: its mean would hide the worst case.
    layers = range(len(SWITCH_LAYERS))
    queues = (
        [f"{max(run.max_queue_layers[layer] for run in runs):.1f}" for layer in layers]
        if all(run.max_queue_layers for run in runs)
        else [NOT_REPORTED] * len(layers)
    )
    return [
        label_of(runs[0].policy),
        _mean([run.cct_ps / PS_PER_US for run in runs], "{:.2f}"),
        _mean([100 * run.increase for run in runs], "{:.1f}") + " %",
        *queues,
        f"{sum(run.dropped for run in runs):,}",
        f"{sum(run.lost_to_failure for run in runs):,}",
    ]


def _mean(values: Sequence[float], form: str) -> str:
    """Return the mean, with the standard deviation where there are several values."""
    mean = sum(values) / len(values)
    if len(values) == 1:
        return form.format(mean)

    # Of a sample, not of all seeds there could be: n - 1.
    deviation = (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
    return f"{form.format(mean)} ± {form.format(deviation)}"
