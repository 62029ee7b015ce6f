"""One experiment on several networks, side by side: their measurements, and the differences.

The first network is the reference. Networks are equal for a load balancer where every seed's value
is, in picoseconds and bytes; means and maxima over the seeds are for people only.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.text import Text

from emulation.outcomes.outcome import label_of
from fattree.records.record import Record
from fattree.records.tables import Folding
from fattree.units import PS_PER_US, time_unit

EQUAL = "green"
DIFFERENT = "bold red"


@dataclass(frozen=True, slots=True)
class Metric:
    """A compared value: its exact form, its form for people, and its summary over seeds."""

    heading: str
    form: str
    exact: Callable[[Record], int | tuple[int, int]]
    number: Callable[[Record], float]
    summary: Callable[[Sequence[float]], float]

    def of(self, runs: Sequence[Record]) -> float:
        """Return one number for the runs of a load balancer."""
        return self.summary([self.number(run) for run in runs])

    def is_equal(self, runs: Sequence[Record], rival_runs: Sequence[Record]) -> bool:
        """Return whether two networks agree, seed by seed."""
        return [self.exact(run) for run in runs] == [self.exact(run) for run in rival_runs]


def mean(values: Sequence[float]) -> float:
    """Return the mean."""
    return sum(values) / len(values)


CCT = Metric(
    "CCT (µs)",
    form=",.2f",
    exact=lambda run: run.cct_ps,
    number=lambda run: run.cct_ps / PS_PER_US,
    summary=mean,
)

# The bound depends on the scenario alone: where it differs, networks have run different things.
INCREASE = Metric(
    "over (%)",
    form=".1f",
    exact=lambda run: (run.cct_ps, run.bound_ps),
    number=lambda run: 100 * run.increase,
    summary=mean,
)
QUEUE = Metric(
    "queue",
    form=".1f",
    exact=lambda run: run.max_queue_bytes,
    number=lambda run: run.max_queue_packets,
    summary=max,
)
PAUSED = Metric(
    "paused (µs)",
    form=",.2f",
    exact=lambda run: (run.paused_ps, run.host_paused_ps),
    number=lambda run: (run.paused_ps + run.host_paused_ps) / PS_PER_US,
    summary=mean,
)
METRICS = (CCT, INCREASE, QUEUE, PAUSED)


@dataclass(frozen=True, slots=True)
class Row:
    """One load balancer: its runs on each network, the reference's first, by seed."""

    policy: str
    runs: Mapping[str, tuple[Record, ...]]

    @property
    def reference(self) -> tuple[Record, ...]:
        """Return the runs that the others are compared with."""
        return next(iter(self.runs.values()))

    def is_equal(self, network: str, metrics: Sequence[Metric] = METRICS) -> bool:
        """Return whether a network agrees with the reference."""
        return all(metric.is_equal(self.reference, self.runs[network]) for metric in metrics)


def compared(records: Sequence[Record]) -> list[Row]:
    """Return one row per load balancer.

    Networks and load balancers stay in the order in which they come.
    """
    networks = list(dict.fromkeys(record.network for record in records))
    return [
        Row(policy, {network: _runs(records, network, policy) for network in networks})
        for policy in dict.fromkeys(record.policy for record in records)
    ]


def _runs(records: Sequence[Record], network: str, policy: str) -> tuple[Record, ...]:
    chosen = [record for record in records if (record.network, record.policy) == (network, policy)]
    # By seed, so that the runs of two networks can be compared one by one.
    return tuple(sorted(chosen, key=lambda record: record.seed))


def comparison_table(rows: Sequence[Row]) -> Folding:
    """Return the table: three columns a network, and one more where links were paused.

    Equal values in green, different ones in red with the difference.
    """
    # One unit for all columns, also where Mininet's runs take longer than virtual ones.
    unit, unit_ps = time_unit(
        run.cct_ps for row in rows for runs in row.runs.values() for run in runs
    )
    cct = replace(CCT, heading=f"CCT ({unit})", number=lambda run: run.cct_ps / unit_ps)
    metrics = [cct, INCREASE, QUEUE, *([PAUSED] if any(map(_has_pauses, rows)) else [])]
    table = Folding(
        "\nload balancer",
        *(f"{network}\n{metric.heading}" for network in rows[0].runs for metric in metrics),
    )

    for row in rows:
        table.add_row(label_of(row.policy), *_cells(row, metrics))

    return table


def _has_pauses(row: Row) -> bool:
    return any(run.pauses for runs in row.runs.values() for run in runs)


def _cells(row: Row, metrics: Sequence[Metric]) -> Iterator[Text]:
    for runs in row.runs.values():
        for metric in metrics:
            text = format(metric.of(runs), metric.form)
            if runs is row.reference:
                yield Text(text)
            elif metric.is_equal(row.reference, runs):
                yield Text(text, style=EQUAL)
            else:
                yield Text(
                    f"{text} ({metric.of(runs) - metric.of(row.reference):+{metric.form}})",
                    style=DIFFERENT,
                )


def verdicts(rows: Sequence[Row]) -> list[Text]:
    """Return a line for each network but the reference: how often it agrees, or the worst."""
    reference, *compared = rows[0].runs
    return [_verdict(rows, reference, network) for network in compared]


def _verdict(rows: Sequence[Row], reference: str, network: str) -> Text:
    equal = sum(row.is_equal(network) for row in rows)
    if equal == len(rows):
        return Text(
            f"{network} equals {reference} in {equal} of {equal} load balancers: "
            "CCT to the ps, longest queue to the B",
            EQUAL,
        )

    worst = max(rows, key=lambda row: abs(_relative(row, network)))
    return Text(
        f"{network} equals {reference} in {equal} of {len(rows)} load balancers; "
        f"largest difference of the CCT: {100 * _relative(worst, network):+.2g} % "
        f"({label_of(worst.policy)})",
        DIFFERENT,
    )


def _relative(row: Row, network: str) -> float:
    return CCT.of(row.runs[network]) / CCT.of(row.reference) - 1


def differences(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the differences, an entry per load balancer, network and seed, as values for JSON."""
    return [
        {
            "policy": row.policy,
            "network": network,
            "seed": run.seed,
            "cct_ps": run.cct_ps - expected.cct_ps,
            "max_queue_bytes": run.max_queue_bytes - expected.max_queue_bytes,
        }
        for row in rows
        for network, runs in row.runs.items()
        for run, expected in zip(runs, row.reference, strict=True)
        if any(metric.exact(run) != metric.exact(expected) for metric in METRICS)
    ]
