"""One row per run: the schema of every result, whichever network it ran on."""

import resource
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, model_validator

from fattree.counters import Counts
from fattree.demand.flows import Flows, longest_computation_ps
from fattree.demand.traffic import message_bytes
from fattree.demand.workloads.jobs import job_flows, scale_of
from fattree.errors import PhysicsError
from fattree.experiment.model import BUILT_IN, Scenario
from fattree.records.naming import named
from fattree.shape.topology import SWITCH_LAYERS

# Most runs need no data frames, and Polars takes a tenth of a second to import.
if TYPE_CHECKING:
    import polars as pl

KIB = 1024
MOST = 2**63 - 1
PERCENTILES = {"fct_p50_ps": 50, "fct_p99_ps": 99, "fct_p999_ps": 99.9}
# Their headings in tables.
FLOW_TIMES = ("p50", "p99", "p99.9")
# Counts that most runs have none of, with their meanings: tables have them where some run does.
RARE = {
    "trimmed": "data packets cut to their headers instead of dropped",
    "pauses": "how often a port has paused its incoming link",
    "victims": "packets held by pauses that other packets caused",
}
LAYERED = "_layers"


class Measured(BaseModel):
    """The description of a run and its times: the columns before the counters."""

    name: str
    """The experiment's `name`."""
    label: str = ""
    """The experiment's `label`."""
    network: str
    """`sim`, `virtual` or `mininet`."""
    policy: str
    """The load balancer, or the name of your program or host rule."""
    k: int
    """`k` of the fat-tree; 0 for other fabrics."""
    fabric: str = ""
    """The fabric in words."""
    hosts: int
    """The number of hosts (NICs) of the fabric."""
    matrix: str
    """The matrix; with several jobs each kind once, joined by `+`."""
    message_bytes: int
    """The bytes of each flow (`fsdp`: a shard of a layer); with several jobs the largest. A traffic
    file has its own sizes.
    """
    packets: int
    """Data packets of all messages."""
    seed: int
    """The seed of matrix, failures and all random choices."""
    recovery: str
    """`transport.recovery`."""
    congestion: str
    """`transport.congestion`."""
    failure_rate: float
    """`failures.rate`."""
    events: str = ""
    """`failures.events`: the place and times of each, as in `core0_1 down_ns=5000`, with `; `
    between them; empty without any.
    """
    degraded: str = ""
    """`failures.degraded`: the slow links, likewise, as in `core0_1 rate=0.5`."""
    losses: str = ""
    """`failures.losses`: the links that lose packets, likewise, as in `core0_1 share=0.01`."""
    convergence_rtt: float
    """`failures.convergence_rtt`; `inf` (in JSON null): routes never change."""
    scenario_hash: str = ""
    """The hash of all settings of the run, but for `name` and `label`: rows with the same hash are
    of the same experiment, load balancer and seed, on any network. A program counts by its name.
    """
    cct_ps: int
    """Collective completion time: the largest time of any flow, from its earliest possible start to
    its last ACK.
    """
    bound_ps: int
    """The least possible `cct_ps`: the longest chain of flows, each alone on empty links (appendix
    B), or, if longer, the time that the busiest host's link needs, or the links of an edge or a pod
    where some are slow, dead or few.
    """
    increase: float
    """(`cct_ps` - `bound_ps`) / `bound_ps`."""
    sending_cct_ps: int = 0
    """As `cct_ps`, but from each flow's first packet, without the random phase before it."""
    sending_bound_ps: int = 0
    """The least possible `sending_cct_ps`: the longest chain of flows, each alone on empty links;
    where shares are static and all flows begin together also what links need, as for `bound_ps`.
    """
    sending_increase: float = 0
    """(`sending_cct_ps` - `sending_bound_ps`) / `sending_bound_ps`."""
    fct_p50_ps: int | None = None
    """The median of the flows' times, each from the flow's earliest possible start."""
    fct_p99_ps: int | None = None
    """The 99th percentile of the flows' times."""
    fct_p999_ps: int | None = None
    """The 99.9th percentile of the flows' times."""
    max_queue_bytes: int
    """The longest queue of any switch port at any time."""
    max_queue_packets: float
    """`max_queue_bytes` in data packets."""
    mean_queue_packets: float | None
    """The mean queue over all switch ports and the run, in data packets; empty on Mininet, which
    does not measure it.
    """
    max_queue_layers: tuple[float, ...]
    """The longest queue of any port of a layer, in data packets: one value for each of E>A, A>C,
    C>A, A>E, E>H (glossary: layers).
    """
    mean_queue_layers: tuple[float, ...]
    """The mean queue over a layer's ports and the run, in data packets."""
    utilisation_layers: tuple[float, ...]
    """The share of the run for which a layer's links carried bits, the mean over its links; gaps
    between packets do not count.
    """


class Record(Counts, Measured):
    """The results of one run; the sentence below a column explains it.

    `cct_ps` counts from each flow's start, `sending_cct_ps` from its first packet, without the
    random phase before it; each of the two has its own bound. `*_layers` have one value for each of
    `topology.SWITCH_LAYERS`.
    """

    compute_ps: int = 0
    """Workloads: the time of the longest chain of computations, without transfers."""
    scale: int = 1
    """Workloads: the number by which bytes and computations were divided."""
    jobs_ps: str = ""
    """Several jobs: the completion time of each job in ps, `NAME=PS`, with spaces between them;
    rows have a column for each job, `jobs_ps.NAME`.
    """
    cpu_s: float
    """The processor time of the run in seconds."""
    max_rss_bytes: int
    """The largest memory use of the process."""

    @model_validator(mode="after")
    def _no_number_beyond_int64(self) -> "Record":
        # No run makes such a number, but a user's file may have it.
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
    """Return the row of a run that has just ended in this process, on any network.

    `policy` is the name of the user's program, if it ran instead of the scenario's policy.
    """
    if not policy:
        refuse_impossible(scenario, network, cct_ps, bound_ps)

    size, packets = message_bytes(scenario), int(flows.packets.sum())
    packet = scenario.data_bytes
    # A record without layers means that no queue was measured; 0 would be an empty queue.
    longest = queues.longest or ()

    return Record(
        **described(scenario, network, size, packets, policy),
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
        **dict(counts),
    )


def refuse_impossible(scenario: Scenario, network: str, cct_ps: int, bound_ps: int) -> None:
    """Raise PhysicsError for a run that was faster than its links.

    Not on Mininet, which runs in real time, and not with the user's program, which may send packets
    twice.
    """
    is_ours = scenario.program in (None, BUILT_IN)
    if cct_ps < bound_ps and network != "mininet" and is_ours:
        raise PhysicsError(
            f"{scenario.balancer}, seed {scenario.seed}: the run ended after {cct_ps:,} ps, but "
            f"its links need {bound_ps:,} ps: this is a bug in Ofan, please report the experiment"
        )


def _jobs_ps(scenario: Scenario, flows: Flows, done_ps: NDArray[np.int64]) -> str:
    if not scenario.jobs:
        return ""

    parts = job_flows(scenario)
    ends = np.cumsum([len(part) for _, part in parts]) * scenario.scheme.subflows
    times = np.split(done_ps - flows.start_ps, ends[:-1])
    return " ".join(f"{name}={of.max()}" for (name, _), of in zip(parts, times, strict=True))


def percentiles(fct_ps: NDArray[np.int64]) -> dict[str, Any]:
    """Return the PERCENTILES of flow completion times; each is the time of a flow, not a mean."""
    times = np.percentile(fct_ps, list(PERCENTILES.values()), method="inverted_cdf")
    return dict(zip(PERCENTILES, map(int, times), strict=True))


def flow_times(records: Sequence[Record], unit_ps: int) -> list[str]:
    """Return the means of FLOW_TIMES over runs as cells; a dash if a run has no such time."""
    columns = [[getattr(record, name) for record in records] for name in PERCENTILES]
    return [
        "-" if None in values else f"{sum(values) / len(values) / unit_ps:.2f}"
        for values in columns
    ]


def rare_counts(records: Iterable[Record]) -> list[str]:
    """Return the RARE counts that at least one run has."""
    listed = list(records)
    return [name for name in RARE if any(getattr(record, name) for record in listed)]


def rare_legend(records: Iterable[Record]) -> str:
    """Return the meaning of the columns of rare counts, empty if there are none."""
    return "".join(f" {name}: {RARE[name]}." for name in rare_counts(records))


def sums(records: Sequence[Record], counts: Sequence[str]) -> list[str]:
    """Return the sums of counts over runs as cells."""
    return [f"{sum(getattr(record, name) for record in records):,}" for name in counts]


def times_of_jobs(jobs_ps: str) -> dict[str, int]:
    """Return the completion time in ps of each job by its name (`Record.jobs_ps`)."""
    times = (entry.rpartition("=") for entry in jobs_ps.split())
    return {name: int(time) for name, _, time in times}


def row(record: Record) -> dict[str, Any]:
    """Return a record's fields with a column for every job, as in `jobs_ps.reduce`."""
    times = times_of_jobs(record.jobs_ps)
    return record.model_dump() | {f"jobs_ps.{name}": time for name, time in times.items()}


def flat(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with a column for every layer, as in `max_queue_layers.E>A`."""
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
    # getrusage(2) counts kibibytes on Linux, bytes on macOS.
    unit = 1 if sys.platform == "darwin" else KIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def described(
    scenario: Scenario, network: str, message_bytes: int, packets: int, policy: str = ""
) -> dict[str, Any]:
    """Return the fields of a Record that name its run (`policy`: `run_record`)."""
    return {
        **named(scenario, policy),
        "network": network,
        "k": scenario.tree.k,
        "fabric": scenario.tree.label,
        "hosts": scenario.tree.hosts,
        "matrix": scenario.matrix,
        "message_bytes": message_bytes,
        "packets": packets,
        "recovery": scenario.transport.recovery,
        "congestion": scenario.transport.congestion,
    }


def table(records: Iterable[Record]) -> "pl.DataFrame":
    """Return records as a data frame, one row each, lists for layers."""
    import polars as pl

    return pl.DataFrame(filled([row(record) for record in records]), infer_schema_length=None)


def filled(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows that all have the same columns, None where a row had no value."""
    # Polars takes the columns of the first row; not all runs need have the same jobs.
    names = dict.fromkeys(name for values in rows for name in values)
    return [{name: values.get(name) for name in names} for values in rows]


def summary(records: Sequence[Record]) -> "pl.DataFrame":
    """Return mean and standard deviation over the seeds of each (network, policy), and how many."""
    import polars as pl

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
