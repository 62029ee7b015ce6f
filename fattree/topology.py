"""The three-level k-ary fat-tree: who is connected to whom, through which port.

Everything is an index, so that arrays can be built on it. With h = k / 2:

    edge  e = pod * h + position        agg  a = pod * h + position
    host  n = e * h + index             core c = agg position * h + index
    switch = edge e | E + agg a | 2 E + core c

Ports count from 1, downlinks first: an edge has hosts on 1 .. h and aggs on h+1 .. 2h (uplink j
leads to the pod's agg j); an agg has edges on 1 .. h and cores on h+1 .. 2h (uplink i of agg j
leads to core j * h + i); a core has pod p on port p + 1. A link is named by its upper and lower
end: link e * h + j joins edge e and agg j of its pod; link k h h + a * h + i joins agg a and its
core i.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple


class Tier(IntEnum):
    """The three tiers of switches."""

    EDGE = 0
    AGG = 1
    CORE = 2


class LinkEnd(NamedTuple):
    """One end of an inter-switch link: the switch and its port."""

    switch: int
    port: int


# The queues that a packet between pods meets, in order; the first is the host's own.
LAYERS = ("H>E", "E>A", "A>C", "C>A", "A>E", "E>H")
SWITCH_LAYERS = LAYERS[1:]


@dataclass(frozen=True, slots=True)
class FatTree:
    """A fat-tree of parameter k (even, 2 to 128); raises ValueError otherwise."""

    k: int

    def __post_init__(self) -> None:
        if self.k % 2 or not 2 <= self.k <= 128:
            raise ValueError(f"k must be even and from 2 to 128, not {self.k}")

    @property
    def half(self) -> int:
        """Return h = k / 2: uplinks of a switch, switches of a tier in a pod, hosts of an edge."""
        return self.k // 2

    @property
    def edges(self) -> int:
        """Return the number of edge switches, which is that of aggregation switches too."""
        return self.k * self.half

    @property
    def cores(self) -> int:
        """Return the number of core switches."""
        return self.half**2

    @property
    def hosts(self) -> int:
        """Return the number of hosts, k**3 / 4."""
        return self.edges * self.half

    @property
    def switches(self) -> int:
        """Return the number of switches of all tiers."""
        return 2 * self.edges + self.cores

    @property
    def links(self) -> int:
        """Return the number of inter-switch links."""
        # As many between edges and aggs as between aggs and cores: full bisection bandwidth.
        return 2 * self.edges * self.half

    def tier(self, switch: int) -> Tier:
        """Return the tier of a switch."""
        # There are half as many cores as edges, so no quotient is above 2.
        return Tier(switch // self.edges)

    def position(self, switch: int) -> tuple[int, int]:
        """Return (pod, position) of an edge or agg, (agg position, index) of a core."""
        return divmod(
            switch % self.edges if switch < 2 * self.edges else switch - 2 * self.edges, self.half
        )

    def edge(self, pod: int, position: int) -> int:
        """Return the switch index of an edge."""
        return pod * self.half + position

    def agg(self, pod: int, position: int) -> int:
        """Return the switch index of an aggregation switch."""
        return self.edges + pod * self.half + position

    def core(self, position: int, index: int) -> int:
        """Return the switch index of the core `index` above the aggs of `position`."""
        return 2 * self.edges + position * self.half + index

    def edge_of_host(self, host: int) -> int:
        """Return the edge switch of a host."""
        return host // self.half

    def pod_of_host(self, host: int) -> int:
        """Return the pod of a host."""
        return host // self.half**2

    def uplink_port(self, uplink: int) -> int:
        """Return the port number of an edge's or agg's uplink (from 0)."""
        return self.half + 1 + uplink

    def link_ends(self, link: int) -> tuple[LinkEnd, LinkEnd]:
        """Return the lower and the upper end of an inter-switch link."""
        # Lower ends are edges and aggs in the order of switches, each with h uplinks.
        h = self.half
        lower, uplink = divmod(link, h)
        if lower < self.edges:
            pod, position = divmod(lower, h)
            return LinkEnd(lower, h + 1 + uplink), LinkEnd(self.agg(pod, uplink), position + 1)

        pod, position = divmod(lower - self.edges, h)
        return LinkEnd(lower, h + 1 + uplink), LinkEnd(self.core(position, uplink), pod + 1)

    def layer_of(self, switch: int, port: int) -> str:
        """Return the layer (one of SWITCH_LAYERS) of the queue at a switch's port."""
        is_up = port > self.half
        match self.tier(switch):
            case Tier.EDGE:
                return LAYERS[1] if is_up else LAYERS[5]
            case Tier.AGG:
                return LAYERS[2] if is_up else LAYERS[4]
            case Tier.CORE:
                return LAYERS[3]

    def neighbour(self, switch: int, port: int) -> LinkEnd | None:
        """Return what a switch's port leads to, None where it is a host (edge * h + port - 1)."""
        h = self.half
        tier = self.tier(switch)
        major, minor = self.position(switch)
        if tier is Tier.CORE:
            return LinkEnd(self.agg(port - 1, major), h + 1 + minor)

        if tier is Tier.AGG:
            if port > h:
                return LinkEnd(self.core(minor, port - h - 1), major + 1)

            return LinkEnd(self.edge(major, port - 1), h + 1 + minor)

        return LinkEnd(self.agg(major, port - h - 1), minor + 1) if port > h else None

    def ports(self, switch: int) -> range:
        """Return the ports of a switch."""
        return range(1, self.k + 1)

    def hops(self, source: int, destination: int) -> int:
        """Return the number of links between two hosts: 2 under one edge, 4 in one pod, else 6."""
        if self.edge_of_host(source) == self.edge_of_host(destination):
            return 2

        return 4 if self.pod_of_host(source) == self.pod_of_host(destination) else 6
