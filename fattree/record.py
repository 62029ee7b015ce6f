"""One row per run: the schema of every result, whichever network it ran on."""

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl
from pydantic import BaseModel, ConfigDict

from fattree.experiment import Scenario


class Record(BaseModel):
    """What one run has shown. Queues are the largest of any switch port.

    `increase` is (CCT - bound) / bound.

    `*_layers` hold one value for each of `topology.SWITCH_LAYERS`. `packets` are data packets.
    Counters count packets.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    network: str
    policy: str
    k: int
    hosts: int
    matrix: str
    message_bytes: int
    packets: int
    seed: int
    recovery: str
    congestion: str
    failure_rate: float
    convergence_rtt: float
    cct_ps: int
    bound_ps: int
    increase: float
    max_queue_bytes: int
    max_queue_packets: float
    mean_queue_packets: float
    max_queue_layers: tuple[float, ...]
    mean_queue_layers: tuple[float, ...]
    utilisation_layers: tuple[float, ...]
    dropped: int
    marked: int
    lost_to_failure: int
    transmissions: int
    packet_hops: int
    redraws: int
    freezes: int = 0
    cpu_s: float
    max_rss_bytes: int


def described(scenario: Scenario, network: str, message_bytes: int, packets: int) -> dict[str, Any]:
    """Return the fields of a Record that name its run."""
    return {
        "name": scenario.name,
        "network": network,
        "policy": scenario.policy,
        "k": scenario.fabric.k,
        "hosts": scenario.tree.hosts,
        "matrix": scenario.collective.matrix,
        "message_bytes": message_bytes,
        "packets": packets,
        "seed": scenario.seed,
        "recovery": scenario.transport.recovery,
        "congestion": scenario.transport.congestion,
        "failure_rate": scenario.failures.rate,
        "convergence_rtt": scenario.failures.convergence_rtt,
    }


def table(records: Iterable[Record]) -> pl.DataFrame:
    """Return records as a data frame, one row each, lists for layers."""
    return pl.DataFrame([record.model_dump() for record in records], infer_schema_length=None)


def summary(records: Sequence[Record]) -> pl.DataFrame:
    """Return mean and standard deviation over the seeds of each (network, policy), and their
    number, in first-seen order.
    """
    return (
        table(records)
        .group_by("network", "policy", maintain_order=True)
        .agg(
            pl.len().alias("seeds"),
            pl.col("cct_ps").mean().alias("cct_ps"),
            pl.col("cct_ps").std().alias("cct_ps_std"),
            pl.col("increase").mean().alias("increase"),
            pl.col("increase").std().alias("increase_std"),
            pl.col("max_queue_packets").mean().alias("max_queue_packets"),
            pl.col("max_queue_packets").max().alias("largest_queue_packets"),
            pl.col("dropped").sum().alias("dropped"),
            pl.col("lost_to_failure").sum().alias("lost_to_failure"),
        )
    )
