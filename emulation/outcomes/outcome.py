"""The outcome of a run on an emulated network, as plain values.

Tables, plots and result files are made from it.
"""

from dataclasses import dataclass

from fattree.counters import PortCounts, SenderCounts
from fattree.experiment.model import Scenario
from fattree.policies import POLICIES
from fattree.routes.demand import Demand
from fattree.shape.topology import LEVEL_OF, SWITCH_LAYERS
from fattree.units import PS_PER_SECOND


@dataclass(frozen=True, slots=True)
class Accounts:
    """Where a run's packets are: sent = received + dropped + unrouted + lost + in flight.

    In flight are those still under way: in virtual time, or inside a switch that stands still.
    Of those sent, `probes` are of edges; on real networks edges' probes are left out.
    """

    sent: int = 0
    received: int = 0
    dropped: int = 0
    unrouted: int = 0
    lost: int = 0
    in_flight: int = 0
    probes: int = 0

    @property
    def unaccounted(self) -> int:
        """Return how many packets have vanished: 0, or something is wrong."""
        return self.sent - self.received - self.dropped - self.unrouted - self.lost - self.in_flight

    def words(self) -> str:
        """Return all of it for people."""
        under_way = f" {self.in_flight} still under way," if self.in_flight else ""
        return (
            f"{self.sent} packets sent, {self.received} received, {self.dropped} dropped,"
            f" {self.unrouted} without a route, {self.lost} lost on links or in dead switches,"
            f"{under_way} {self.unaccounted} unaccounted for"
        )


@dataclass(frozen=True, slots=True)
class FlowResult(SenderCounts[int]):
    """One flow: when it should start, when it could, when its first packet left.

    `done_ps` is when its sender knew it complete.
    """

    flow: int
    source: int
    destination: int
    packets: int
    planned_ps: int
    start_ps: int
    first_ps: int
    done_ps: int

    @property
    def fct_ps(self) -> int:
        """Return the flow's completion time, from when it could start."""
        return self.done_ps - self.start_ps


@dataclass(frozen=True, slots=True)
class PortResult(PortCounts[int]):
    """One output port of a switch over the whole run; `mean_queue_bytes` is the time average.

    Either of the queue's figures is None where the switch does not report it.
    """

    switch: int
    port: int
    layer: str
    packets: int
    bytes: int
    max_queue_bytes: int | None
    mean_queue_bytes: float | None


@dataclass(frozen=True, slots=True)
class QueueSamples:
    """The longest queue of each of the SWITCH_LAYERS over time: `bytes[i]` at `times_ps[i]`."""

    times_ps: tuple[int, ...]
    bytes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class ArrayState:
    """A switch's register or counter, and its cells that are not zero, by their numbers.

    A register's cell is its value, a counter's its packets and bytes.
    """

    switch: str
    array: str
    cells: tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """One finished run.

    `digest` is the hash of its event log, `hops` counts packets through switches, `host_paused_ps`
    is how long hosts were paused, all together.

    `own_program` names the program of the user's that its switches ran, with the groups and hosts
    of `scenario.policy`. `state` has its registers and counters, where that is asked for.
    """

    demand: Demand
    flows: tuple[FlowResult, ...]
    ports: tuple[PortResult, ...]
    samples: QueueSamples
    accounts: Accounts
    digest: str
    end_ps: int
    hops: int
    cpu_seconds: float
    own_program: str = ""
    state: tuple[ArrayState, ...] = ()
    host_paused_ps: int = 0

    @property
    def scenario(self) -> Scenario:
        """Return the scenario that ran."""
        return self.demand.scenario

    @property
    def policy(self) -> str:
        """Return the load balancer: a policy's slug, or the names of the user's files."""
        return self.own_program or self.scenario.balancer

    @property
    def cct_ps(self) -> int:
        """Return the completion time: the longest of (completion at the sender - own start)."""
        return max(flow.done_ps - flow.planned_ps for flow in self.flows)

    @property
    def reports_queues(self) -> bool:
        """Return whether the switches tell how long their queues were."""
        return all(port.max_queue_bytes is not None for port in self.ports)

    def max_queue_bytes(self, layer: str | None = None) -> int:
        """Return the longest queue of a layer, or of all switch ports; 0 where none is reported."""
        lengths = (port.max_queue_bytes or 0 for port in self.ports if layer in (None, port.layer))
        return max(lengths, default=0)

    def mean_queue_bytes(self, layer: str | None = None) -> float | None:
        """Return the time average per port of a layer's queues, or of all; None: not reported."""
        # Every port of a layer has the same time, so the mean of the means is that of the layer.
        lengths = [port.mean_queue_bytes for port in self.ports if layer in (None, port.layer)]
        if not lengths:
            return 0.0

        reported = [value for value in lengths if value is not None]
        return sum(reported) / len(reported) if reported else None

    def utilisation(self, layer: str) -> float:
        """Return the share of the run for which a layer's links carried bits, gaps not included."""
        loads = [port.bytes for port in self.ports if port.layer == layer]
        # A leaf-spine has no cores.
        if not loads:
            return 0.0

        rate_bps = self.scenario.rates_bps[LEVEL_OF[layer]]
        return sum(loads) * 8 * PS_PER_SECOND / (len(loads) * rate_bps * self.end_ps)

    def inter_switch(self) -> dict[str, list[PortResult]]:
        """Return the ports that lead to other switches, per layer, in their switches' order."""
        # The last layer leads to hosts.
        layers = {
            layer: [port for port in self.ports if port.layer == layer]
            for layer in SWITCH_LAYERS[:-1]
        }
        return {layer: ports for layer, ports in layers.items() if ports}


def label_of(policy: str) -> str:
    """Return a load balancer's label; a user's program is called by its file name."""
    return POLICIES[policy].label if policy in POLICIES else policy
