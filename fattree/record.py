"""One row per run: the schema of every result, whichever network it ran on."""

import resource
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, model_validator

from fattree.errors import PhysicsError
from fattree.experiment import BUILT_IN, Scenario
from fattree.flows import Flows, longest_computation_ps
from fattree.topology import SWITCH_LAYERS
from fattree.traffic import message_bytes
from fattree.workloads.jobs import job_flows, scale_of

KIB = 1024
MOST = 2**63 - 1
PERCENTILES = {"fct_p50_ps": 50, "fct_p99_ps": 99, "fct_p999_ps": 99.9}
# Their headings in tables.
FLOW_TIMES = ("p50", "p99", "p99.9")
LAYERED = "_layers"


class Record(BaseModel):
    """What one run has shown. Queues are the largest of any switch port.

    `cct_ps` counts from each flow's start, `sending_cct_ps` from its first packet, without the
    random phase before it; `increase` and `sending_increase` are (CCT - bound) / bound of either,
    each with a bound of its own.
    `fct_*_ps` are percentiles of the flows' own times, each from when the flow could start.

    `k` is 0 where `fabric` has other counts than a k-ary fat-tree.
    `*_layers` hold one value for each of `topology.SWITCH_LAYERS`. `packets` are data packets.
    Counters count packets. Of a workload, `compute_ps` is how long its computations take alone, and
    `scale` what bytes and computations were divided by; of several jobs, `jobs_ps` has each one's
    completion time, NAME=PS.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    network: str
    policy: str
    k: int
    fabric: str = ""
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
    sending_cct_ps: int = 0
    sending_bound_ps: int = 0
    sending_increase: float = 0
    fct_p50_ps: int | None = None
    fct_p99_ps: int | None = None
    fct_p999_ps: int | None = None
    max_queue_bytes: int
    max_queue_packets: float
    mean_queue_packets: float | None
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
    trimmed: int = 0
    compute_ps: int = 0
    scale: int = 1
    jobs_ps: str = ""
    cpu_s: float
    max_rss_bytes: int

    @model_validator(mode="after")
    def _no_number_beyond_int64(self) -> "Record":
        # No run makes one, but a file of somebody's may have it.
        for name, value in self:
            if isinstance(value, int) and not -MOST <= value <= MOST:
                raise ValueError(f"{name} is beyond 64 bits")

        return self


@dataclass(frozen=True, slots=True)
class Queues:
    """The switch ports' queues over a run, in bytes, one value for each of SWITCH_LAYERS.

    `longest` is that of a layer's longest queue (None: not reported), `mean` the time average of a
    layer's ports and `mean_of_all` that of all ports (None: not reported); `utilisation` is a share
    of the run.
    """

    longest: Sequence[int] | None
    mean: Sequence[float | None]
    mean_of_all: float | None
    utilisation: Sequence[float]


@dataclass(frozen=True, slots=True)
class Counts:
    """What a run has counted, under the names that a Record has for it."""

    dropped: int
    marked: int
    lost_to_failure: int
    transmissions: int
    packet_hops: int
    redraws: int
    freezes: int
    trimmed: int


def run_record(
    scenario: Scenario,
    network: str,
    flows: Flows,
    *,
    cct_ps: int,
    sending_cct_ps: int,
    sending_bound_ps: int,
    fct_ps: NDArray[np.int64],
    done_ps: NDArray[np.int64],
    bound_ps: int,
    queues: Queues,
    counts: Counts,
    cpu_s: float,
    policy: str = "",
) -> Record:
    """Return the row of a run that has just ended in this process, on whichever network.

    `policy` is the name of a program of the user's, where it balanced the load instead of the
    scenario's policy.
    """
    if not policy:
        refuse_impossible(scenario, network, cct_ps, bound_ps)

    name = described(scenario, network, message_bytes(scenario), int(flows.packets.sum()))
    packet = scenario.data_bytes
    # A record without layers says that nobody has looked; 0 would be an empty queue.
    longest = queues.longest or ()

    return Record(
        **name | {"policy": policy or scenario.balancer},
        cct_ps=cct_ps,
        bound_ps=bound_ps,
        increase=cct_ps / bound_ps - 1,
        sending_cct_ps=sending_cct_ps,
        sending_bound_ps=sending_bound_ps,
        sending_increase=sending_cct_ps / sending_bound_ps - 1,
        **percentiles(fct_ps[flows.packets > 0]),
        compute_ps=longest_computation_ps(scenario.tree, flows),
        scale=scale_of(scenario),
        jobs_ps=_jobs_ps(scenario, flows, done_ps),
        max_queue_bytes=max(longest, default=0),
        max_queue_packets=max(longest, default=0) / packet,
        mean_queue_packets=None if queues.mean_of_all is None else queues.mean_of_all / packet,
        max_queue_layers=tuple(size / packet for size in longest),
        mean_queue_layers=tuple(size / packet for size in queues.mean if size is not None),
        utilisation_layers=tuple(queues.utilisation),
        cpu_s=cpu_s,
        max_rss_bytes=max_rss_bytes(),
        **asdict(counts),
    )


def refuse_impossible(scenario: Scenario, network: str, cct_ps: int, bound_ps: int) -> None:
    """Raise PhysicsError for a run that was faster than its links.

    Not on Mininet, whose clock is the machine's, nor where a program of the user's may send packets
    twice.
    """
    is_ours = scenario.program in (None, BUILT_IN)
    if cct_ps < bound_ps and network != "mininet" and is_ours:
        raise PhysicsError(
            f"{scenario.balancer}, seed {scenario.seed}: the run ended after {cct_ps:,} ps, but "
            f"its links need {bound_ps:,} ps: this is a fault of ours, please report the experiment"
        )


def _jobs_ps(scenario: Scenario, flows: Flows, done_ps: NDArray[np.int64]) -> str:
    if not scenario.jobs:
        return ""

    parts = job_flows(scenario)
    ends = np.cumsum([len(part) for _, part in parts]) * scenario.scheme.subflows
    times = np.split(done_ps - flows.start_ps, ends[:-1])
    return " ".join(f"{name}={of.max()}" for (name, _), of in zip(parts, times, strict=True))


def percentiles(fct_ps: NDArray[np.int64]) -> dict[str, Any]:
    """Return the PERCENTILES of flow completion times: each the time of a flow, nothing between."""
    found = np.percentile(fct_ps, list(PERCENTILES.values()), method="inverted_cdf")
    return dict(zip(PERCENTILES, map(int, found), strict=True))


def flow_times(records: Sequence[Record], unit_ps: int) -> list[str]:
    """Return the means of FLOW_TIMES over runs as cells; a dash where a run has none."""
    columns = [[getattr(record, name) for record in records] for name in PERCENTILES]
    return [
        "-" if None in values else f"{sum(values) / len(values) / unit_ps:.2f}"
        for values in columns
    ]


def flat(row: dict[str, Any]) -> dict[str, Any]:
    """Return a record's fields with a column for every layer, as in `max_queue_layers.E>A`."""
    # CSV has no lists. Layers that a record lacks are empty.
    plain = {name: value for name, value in row.items() if not name.endswith(LAYERED)}
    for name in (name for name in row if name.endswith(LAYERED)):
        values = (*row[name], *[None] * (len(SWITCH_LAYERS) - len(row[name])))
        plain |= {
            f"{name}.{layer}": value for layer, value in zip(SWITCH_LAYERS, values, strict=True)
        }

    return plain


def max_rss_bytes() -> int:
    """Return the most memory that this process has held."""
    # getrusage(2) tells kibibytes on Linux, bytes on macOS.
    unit = 1 if sys.platform == "darwin" else KIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def described(scenario: Scenario, network: str, message_bytes: int, packets: int) -> dict[str, Any]:
    """Return the fields of a Record that name its run."""
    return {
        "name": scenario.name,
        "network": network,
        "policy": scenario.balancer,
        "k": scenario.tree.k,
        "fabric": scenario.tree.label,
        "hosts": scenario.tree.hosts,
        "matrix": scenario.matrix,
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
    """Return mean and standard deviation over the seeds of each (network, policy), and how many."""
    # In first-seen order, which is that of the experiment's list of load balancers.
    return (
        table(records)
        .group_by("network", "policy", maintain_order=True)
        .agg(
            pl.len().alias("seeds"),
            pl.col("cct_ps").mean().alias("cct_ps"),
            pl.col("cct_ps").std().alias("cct_ps_std"),
            pl.col("increase").mean().alias("increase"),
            pl.col("increase").std().alias("increase_std"),
            pl.col("sending_increase").mean().alias("sending_increase"),
            pl.col("sending_increase").std().alias("sending_increase_std"),
            pl.col("max_queue_packets").mean().alias("max_queue_packets"),
            pl.col("max_queue_packets").max().alias("largest_queue_packets"),
            pl.col("dropped").sum().alias("dropped"),
            pl.col("lost_to_failure").sum().alias("lost_to_failure"),
        )
    )
