"""What a run has shown: per flow, per port and per layer, as arrays, polars tables and one
`fattree.record.Record`.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fattree.bounds import bound_ps
from fattree.experiment import Scenario
from fattree.flows import Flows
from fattree.record import Counts, Queues, Record, run_record
from fattree.topology import SWITCH_LAYERS, FatTree
from fattree.units import PS_PER_SECOND

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Ports:
    """Per switch port, flat: switch * k + port - 1.

    `byte_ps` is the integral of its queue over the run; loads leave out gaps.
    """

    max_bytes: Int64
    byte_ps: Int64
    load_bytes: Int64
    packets: Int64
    dropped: Int64
    marked: Int64
    lost: Int64


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Queues over time: bytes at the longest port and of all ports together of each of
    SWITCH_LAYERS, shape (samples, layers).
    """

    times_ps: Int64
    longest: Int64
    total: Int64


@dataclass(frozen=True, eq=False)
class Result:
    """A finished run. Arrays are per flow, in the order of `flows`.

    Host links are in `host_bytes` and `host_packets`.
    """

    scenario: Scenario
    flows: Flows
    gaps: Int64
    end_ps: int
    start_ps: Int64
    done_ps: Int64
    transmissions: Int64
    freezes: Int64
    ports: Ports
    host_bytes: Int64
    host_packets: Int64
    unroutable: int
    redraws: int
    series: Series | None
    cpu_s: float

    @property
    def cct_ps(self) -> int:
        """Return the collective completion time: the longest of (completion at the sender - own
        start in the scenario).
        """
        return int((self.done_ps - self.flows.start_ps).max())

    @cached_property
    def bound_ps(self) -> int:
        """Return the lower bound of the completion time at the flows' pace (appendix B)."""
        return bound_ps(self.scenario, self.flows, self.gaps)

    @property
    def increase(self) -> float:
        """Return (CCT - bound) / bound."""
        return self.cct_ps / self.bound_ps - 1

    @property
    def packet_hops(self) -> int:
        """Return how many packets were put on links, hosts' links included."""
        return int(self.ports.packets.sum() + self.host_packets.sum())

    @property
    def record(self) -> Record:
        """Return the run's row."""
        tree = self.scenario.tree
        ports = self.ports
        bytes_of_run = self.scenario.rate_bps * self.end_ps / (8 * PS_PER_SECOND)
        loads = [layer.mean() for layer in by_layer(tree, ports.load_bytes)]
        queues = Queues(
            longest=[int(layer.max(initial=0)) for layer in by_layer(tree, ports.max_bytes)],
            mean=[float(layer.mean() / self.end_ps) for layer in by_layer(tree, ports.byte_ps)],
            mean_of_all=float(ports.byte_ps.mean() / self.end_ps),
            utilisation=[float(load / bytes_of_run) for load in loads],
        )

        counts = Counts(
            dropped=int(ports.dropped.sum()) + self.unroutable,
            marked=int(ports.marked.sum()),
            lost_to_failure=int(ports.lost.sum()),
            transmissions=int(self.transmissions.sum()),
            packet_hops=self.packet_hops,
            redraws=self.redraws,
            freezes=int(self.freezes.sum()),
        )

        return run_record(
            self.scenario,
            "sim",
            self.flows,
            cct_ps=self.cct_ps,
            bound_ps=self.bound_ps,
            queues=queues,
            counts=counts,
            cpu_s=self.cpu_s,
        )

    def flow_table(self) -> pl.DataFrame:
        """Return one row per flow."""
        flows = self.flows
        columns = {
            "source": flows.source,
            "destination": flows.destination,
            "packets": flows.packets,
        }

        times = {
            "start_ps": self.start_ps,
            "done_ps": self.done_ps,
            "transmissions": self.transmissions,
        }

        return pl.DataFrame(columns | times)

    def port_table(self) -> pl.DataFrame:
        """Return one row per switch port."""
        k = self.scenario.fabric.k
        ports = self.ports
        number = np.arange(len(ports.packets))
        columns = {
            "switch": number // k,
            "port": number % k + 1,
            "layer": port_layers(self.scenario.tree),
        }

        counts = {
            name: getattr(ports, name)
            for name in ("packets", "load_bytes", "dropped", "marked", "lost", "max_bytes")
        }

        return pl.DataFrame(columns | counts | {"mean_bytes": ports.byte_ps / self.end_ps})

    def layer_table(self) -> pl.DataFrame:
        """Return one row per layer of switch ports: the largest and the mean over its ports."""
        return self.port_table().group_by("layer", maintain_order=True).agg(
            pl.len().alias("ports"),
            pl.col("max_bytes").max(),
            pl.col("mean_bytes").mean(),
            pl.col("load_bytes").max().alias("max_load_bytes"),
            pl.col("load_bytes").mean().alias("mean_load_bytes"),
            pl.col("dropped", "marked", "lost").sum(),
        )  # fmt: skip

    def series_table(self) -> pl.DataFrame:
        """Return one row per sample and layer; empty unless samples were asked for."""
        series = self.series or Series(*np.zeros((3, 0, len(SWITCH_LAYERS)), dtype=np.int64))
        layers = len(SWITCH_LAYERS)
        return pl.DataFrame(
            {
                "time_ps": np.repeat(series.times_ps, layers) if self.series else [],
                "layer": list(SWITCH_LAYERS) * len(series.longest),
                "longest_bytes": series.longest.ravel(),
                "total_bytes": series.total.ravel(),
            }
        )


def by_layer(tree: FatTree, values: Int64) -> tuple[Int64, ...]:
    """Split one value per switch port into those of each of SWITCH_LAYERS, shape (switches, ports)."""
    edge, agg = values[: 2 * tree.edges * tree.k].reshape(2, tree.edges, tree.k)
    core = values[2 * tree.edges * tree.k :].reshape(tree.cores, tree.k)
    return (
        edge[:, tree.half :],
        agg[:, tree.half :],
        core,
        agg[:, : tree.half],
        edge[:, : tree.half],
    )


def port_layers(tree: FatTree) -> list[str]:
    """Return the layer of every switch port."""
    layers = np.empty(tree.switches * tree.k, dtype=np.int64)
    for layer, view in enumerate(by_layer(tree, layers)):
        view[:] = layer

    return [SWITCH_LAYERS[layer] for layer in layers.tolist()]
