"""Warnings of packets that a user's program has sent to no port: it is seldom meant."""

from collections.abc import Iterable

from fattree.experiment.model import BUILT_IN, Scenario
from fattree.records.record import Record


def portless_words(packets: int) -> str:
    """Return the warning of so many packets without a port."""
    return (
        f"{packets:,} packets had no port: a slot beyond the schedule"
        " (slots are 0 to meta.length - 1), no route, or mark_to_drop"
    )


def portless(runs: Iterable[tuple[Scenario, Record]]) -> list[str]:
    """Return a line for each program of the user's that had packets without a port."""
    counts: dict[str, int] = {}
    for scenario, record in runs:
        if scenario.program not in (None, BUILT_IN) and record.unroutable:
            counts[record.policy] = counts.get(record.policy, 0) + record.unroutable

    return [f"{name}: {portless_words(packets)}" for name, packets in counts.items()]
