"""Results of a run: arrays per flow and per port, and a `fattree.records.record.Record`."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fattree.counters import (
    PORT_COUNTERS,
    SENDER_COUNTERS,
    Counts,
    PortCounts,
    SenderCounts,
    kept,
)
from fattree.demand.flows import Flows
from fattree.experiment.model import Scenario
from fattree.records.record import Queues, Record, run_record
from fattree.routes.bounds import bound_ps, sending_bound_ps
from fattree.shape.topology import LEVEL_OF, SWITCH_LAYERS
from fattree.units import PS_PER_SECOND
from sim.runs.layers import by_layer
from sim.runs.shown import html, line

if TYPE_CHECKING:
    from sim.runs.pictures import Picture

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Ports(PortCounts[Int64]):
    """Per switch port, flat: tree.first_port(switch) + port - 1.

    `queue_byte_ps` is the integral of its queue over the run; `bytes` leave out gaps; `bytes` and
    `packets` leave out dropped packets, and include packets that went into a dead link.
    """

    packets: Int64
    bytes: Int64
    max_queue_bytes: Int64
    queue_byte_ps: Int64


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Queues over time in bytes, shape (samples, layers): the longest port, and all together.

    Layers are those of SWITCH_LAYERS.
    """

    times_ps: Int64
    longest: Int64
    total: Int64


@dataclass(frozen=True, eq=False, repr=False)
class Result(SenderCounts[Int64]):
    """A finished run. Arrays are per flow, in the order of `flows`.

    `gaps` are the paced gaps, `end_ps` is when the last flow was done, `host_bytes` and
    `host_packets` are the loads of hosts' links, host by host, `host_paused_ps` is the sum of the
    times for which hosts were paused, `probes` are those that each edge has sent.
    """

    scenario: Scenario
    flows: Flows
    gaps: Int64
    end_ps: int
    start_ps: Int64
    first_ps: Int64
    done_ps: Int64
    ports: Ports
    host_bytes: Int64
    host_packets: Int64
    host_lost: int
    host_paused_ps: int
    unroutable: int
    redraws: int
    series: Series | None
    cpu_s: float
    probes: int = 0

    def __repr__(self) -> str:
        return line(self)

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        return html(self)

    def plot(self) -> "Picture":
        """Return a picture of the flows' times and of the layers' longest queues."""
        # Matplotlib takes half a second to import.
        from sim.runs.pictures import plot

        return plot(self)

    @property
    def cct_ps(self) -> int:
        """Return the collective completion time, from each flow's start."""
        return self.flows.longest_ps(self.done_ps)

    @property
    def sending_cct_ps(self) -> int:
        """Return the collective completion time, from each flow's first packet."""
        return self.flows.longest_sending_ps(self.first_ps, self.done_ps)

    @cached_property
    def bound_ps(self) -> int:
        """Return the lower bound of the completion time at the flows' pace (appendix B)."""
        return bound_ps(self.scenario, self.flows, self.gaps)

    @cached_property
    def sending_bound_ps(self) -> int:
        """Return the lower bound of the completion time from each flow's first packet."""
        return sending_bound_ps(self.scenario, self.flows, self.gaps)

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
        # Means over a layer's ports: each link of a layer could carry as much as any other.
        loads = [_mean(layer) for layer in by_layer(tree, ports.bytes)]
        run_s = self.end_ps / PS_PER_SECOND
        capacities = [
            self.scenario.rates_bps[LEVEL_OF[layer]] * run_s / 8 for layer in SWITCH_LAYERS
        ]
        queues = Queues(
            longest=[int(layer.max(initial=0)) for layer in by_layer(tree, ports.max_queue_bytes)],
            mean=[_mean(layer) / self.end_ps for layer in by_layer(tree, ports.queue_byte_ps)],
            mean_of_all=float(ports.queue_byte_ps.mean() / self.end_ps),
            utilisation=[load / bytes_ for load, bytes_ in zip(loads, capacities, strict=True)],
        )

        counts = kept(PORT_COUNTERS, ports) | kept(SENDER_COUNTERS, self)
        sums = {name: int(values.sum()) for name, values in counts.items()}
        # A packet that a switch has no path for is dropped too, but at no port.
        sums["dropped"] += self.unroutable
        sums["lost_to_failure"] += self.host_lost

        return run_record(
            self.scenario,
            "sim",
            self.flows,
            cct_ps=self.cct_ps,
            sending_cct_ps=self.sending_cct_ps,
            fct_ps=self.done_ps - self.start_ps,
            done_ps=self.done_ps,
            bound_ps=self.bound_ps,
            sending_bound_ps=self.sending_bound_ps,
            queues=queues,
            counts=Counts(
                **sums,
                packet_hops=self.packet_hops,
                redraws=self.redraws,
                host_paused_ps=self.host_paused_ps,
                unroutable=self.unroutable,
            ),
            cpu_s=self.cpu_s,
        )


def _mean(layer: Int64) -> float:
    """Return the mean of a layer's ports, 0 where the fabric has no such layer."""
    return float(layer.mean()) if layer.size else 0.0
