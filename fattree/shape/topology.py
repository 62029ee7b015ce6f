"""Fabrics: folded Clos networks of two or three levels, with all links and ports.

Everything is an index, so that arrays can be built on it. An uplink of an edge is (agg position,
number of the parallel link), an uplink of an agg (core index, number of the parallel link):

    edge  e = pod * edges_per_pod + position       agg  a = pod * aggs_per_pod + position
    host  n = e * hosts_per_edge + index           core c = agg column * cores_per_agg + index
    switch = edge e | edges + agg a | edges + aggs + core c

Ports count from 1, downlinks first, parallel links side by side: an edge's are its hosts and then
its uplinks, an agg's the edges of its pod and then its uplinks, a core's the pods. A link is named
by its lower end and uplink, edges' first: those of edge 0, edge 1, ..., agg 0, agg 1, ...

A column has the aggs of one position in all pods: the aggs below the same cores. A leaf-spine
is one pod without cores: edges are its leaves, aggs its spines.

Planes are separate fabrics without links between them; pods and columns are numbered through all
planes. A machine has a NIC in each plane; here each NIC is a host.
"""

from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import NamedTuple


class Tier(IntEnum):
    """The three tiers of switches."""

    EDGE = 0
    AGG = 1
    CORE = 2


class Level(IntEnum):
    """The tiers that a link joins; rates and latencies are set per level."""

    HOST = 0
    EDGE_AGG = 1
    AGG_CORE = 2


class LinkEnd(NamedTuple):
    """One end of an inter-switch link: the switch and its port."""

    switch: int
    port: int


# The queues that a packet between pods meets, in order; the first is the host's own.
LAYERS = ("H>E", "E>A", "A>C", "C>A", "A>E", "E>H")
SWITCH_LAYERS = LAYERS[1:]
LEVEL_OF = dict(
    zip(
        LAYERS,
        (Level.HOST, Level.EDGE_AGG, Level.AGG_CORE, Level.AGG_CORE, Level.EDGE_AGG, Level.HOST),
        strict=True,
    )
)


class Speeds(NamedTuple):
    """The speed of a link of each level, a host's link being 1."""

    edge_agg: Fraction = Fraction(1)
    agg_core: Fraction = Fraction(1)


EQUAL = Speeds()

# A switch's ports below the P4 programs' own two, of 9 bits (p4src/include/sizes.p4).
MOST_PORTS = 509
# Of an address 10.pod.edge.host: .1 is the edge switch's, .255 every host's.
MOST_HOSTS = 253


@dataclass(frozen=True, slots=True)
class FatTree:
    """A fabric by its counts. FatTree(k) is the three-level k-ary fat-tree (k even, 2 to 128).

    `pods` counts the pods of all planes. Raises ValueError for any other k, and for counts below 1;
    without cores there is one pod per plane.
    """

    k: int = 0
    pods: int = 0
    edges_per_pod: int = 0
    hosts_per_edge: int = 0
    aggs_per_pod: int = 0
    cores_per_agg: int = 0
    edge_agg_links: int = 1
    agg_core_links: int = 1
    planes: int = 1

    def __post_init__(self) -> None:
        counts = (self.pods, self.edges_per_pod, self.hosts_per_edge, self.aggs_per_pod)
        if counts == (0, 0, 0, 0):
            if self.k % 2 or not 2 <= self.k <= 128:
                raise ValueError(f"k must be even and from 2 to 128, not {self.k}")

            object.__setattr__(self, "pods", self.k * self.planes)
            for name in ("edges_per_pod", "hosts_per_edge", "aggs_per_pod", "cores_per_agg"):
                object.__setattr__(self, name, self.k // 2)

            return

        if min(*counts, self.edge_agg_links, self.agg_core_links) < 1 or self.cores_per_agg < 0:
            raise ValueError(f"a fabric has at least one of everything but cores, not {counts}")
        if self.planes < 1 or self.pods % self.planes:
            raise ValueError(f"{self.pods} pods are not {self.planes} planes of as many each")
        if self.pods > self.planes and self.cores_per_agg == 0:
            raise ValueError(f"{self.pods} pods need cores: cores_per_agg is 0")

    @property
    def label(self) -> str:
        """Return the fabric's name for people: `k = 4`, or the counts."""
        planes = f"{self.planes} planes of " if self.planes > 1 else ""
        if self.k:
            return f"{planes}k = {self.k}"

        parallel = f" by {self.edge_agg_links} links each" if self.edge_agg_links > 1 else ""
        pod = (
            f"{self.edges_per_pod} edges of {self.hosts_per_edge} hosts, "
            f"{self.aggs_per_pod} aggs{parallel}"
        )
        if self.cores_per_agg == 0:
            return f"{planes}{pod}"

        parallel = f" by {self.agg_core_links} links each" if self.agg_core_links > 1 else ""
        cores = self.cores // self.planes
        return f"{planes}{self.pods_per_plane} pods of {pod}, {cores} cores{parallel}"

    @property
    def pods_per_plane(self) -> int:
        """Return the number of pods that cores join."""
        return self.pods // self.planes

    @property
    def columns(self) -> int:
        """Return the number of columns: positions of aggs in a pod, of all planes."""
        return self.planes * self.aggs_per_pod

    @property
    def edges(self) -> int:
        """Return the number of edge switches."""
        return self.pods * self.edges_per_pod

    @property
    def aggs(self) -> int:
        """Return the number of aggregation switches."""
        return self.pods * self.aggs_per_pod

    @property
    def cores(self) -> int:
        """Return the number of core switches."""
        return self.columns * self.cores_per_agg

    @property
    def hosts_per_pod(self) -> int:
        """Return the number of hosts of a pod."""
        return self.edges_per_pod * self.hosts_per_edge

    @property
    def hosts(self) -> int:
        """Return the number of hosts, k**3 / 4 in a fat-tree."""
        return self.pods * self.hosts_per_pod

    @property
    def machines(self) -> int:
        """Return the number of machines: as many as a plane has hosts."""
        return self.hosts // self.planes

    def machine(self, host: int) -> int:
        """Return the machine of a host (a NIC)."""
        return host % self.machines

    @property
    def first_agg(self) -> int:
        """Return the switch index of the first agg."""
        return self.edges

    @property
    def first_core(self) -> int:
        """Return the switch index of the first core."""
        return self.edges + self.aggs

    @property
    def switches(self) -> int:
        """Return the number of switches of all tiers."""
        return self.first_core + self.cores

    @property
    def edge_uplinks(self) -> int:
        """Return how many uplinks an edge has."""
        return self.aggs_per_pod * self.edge_agg_links

    @property
    def agg_uplinks(self) -> int:
        """Return how many uplinks an agg has: none in a leaf-spine."""
        return self.cores_per_agg * self.agg_core_links

    @property
    def most_uplinks(self) -> int:
        """Return the most uplinks that a switch has."""
        return max(self.edge_uplinks, self.agg_uplinks)

    @property
    def edge_links(self) -> int:
        """Return the number of links between edges and aggs, which are numbered first."""
        return self.edges * self.edge_uplinks

    @property
    def links(self) -> int:
        """Return the number of inter-switch links."""
        return self.edge_links + self.aggs * self.agg_uplinks

    @property
    def has_parallel_links(self) -> bool:
        """Return whether any two switches are joined by several links."""
        return max(self.edge_agg_links, self.agg_core_links) > 1

    def tier(self, switch: int) -> Tier:
        """Return the tier of a switch."""
        if switch < self.first_agg:
            return Tier.EDGE

        return Tier.AGG if switch < self.first_core else Tier.CORE

    def position(self, switch: int) -> tuple[int, int]:
        """Return (pod, position) of an edge or agg, (column of aggs, index) of a core."""
        match self.tier(switch):
            case Tier.EDGE:
                return divmod(switch, self.edges_per_pod)
            case Tier.AGG:
                return divmod(switch - self.first_agg, self.aggs_per_pod)
            case Tier.CORE:
                return divmod(switch - self.first_core, self.cores_per_agg)

    def edge(self, pod: int, position: int) -> int:
        """Return the switch index of an edge."""
        return pod * self.edges_per_pod + position

    def agg(self, pod: int, position: int) -> int:
        """Return the switch index of an aggregation switch."""
        return self.first_agg + pod * self.aggs_per_pod + position

    def core(self, column: int, index: int) -> int:
        """Return the switch index of the core `index` above a column of aggs."""
        return self.first_core + column * self.cores_per_agg + index

    def column(self, pod: int, position: int) -> int:
        """Return the column of a pod's agg."""
        return pod // self.pods_per_plane * self.aggs_per_pod + position

    def first_pod(self, core: int) -> int:
        """Return the first pod below a core."""
        return self.position(core)[0] // self.aggs_per_pod * self.pods_per_plane

    def edge_of_host(self, host: int) -> int:
        """Return the edge switch of a host."""
        return host // self.hosts_per_edge

    def pod_of_host(self, host: int) -> int:
        """Return the pod of a host."""
        return host // self.hosts_per_pod

    def downlinks(self, switch: int) -> int:
        """Return how many ports of a switch lead down."""
        match self.tier(switch):
            case Tier.EDGE:
                return self.hosts_per_edge
            case Tier.AGG:
                return self.edges_per_pod * self.edge_agg_links
            case Tier.CORE:
                return self.pods_per_plane * self.agg_core_links

    def uplinks(self, switch: int) -> int:
        """Return how many ports of a switch lead up."""
        match self.tier(switch):
            case Tier.EDGE:
                return self.edge_uplinks
            case Tier.AGG:
                return self.agg_uplinks
            case Tier.CORE:
                return 0

    def uplink_port(self, switch: int, uplink: int) -> int:
        """Return the port number of a switch's uplink (from 0)."""
        return self.downlinks(switch) + 1 + uplink

    def ports(self, switch: int) -> range:
        """Return the ports of a switch."""
        return range(1, self.downlinks(switch) + self.uplinks(switch) + 1)

    @property
    def most_ports(self) -> int:
        """Return the most ports that a switch has."""
        # Switches of a tier are alike.
        firsts = (0, self.first_agg, *((self.first_core,) if self.cores else ()))
        return max(len(self.ports(switch)) for switch in firsts)

    def parallel_links(self, lower: int) -> int:
        """Return how many links join an edge or agg with each switch above it."""
        return self.edge_agg_links if self.tier(lower) is Tier.EDGE else self.agg_core_links

    def first_port(self, switch: int) -> int:
        """Return the number of ports of all switches before `switch`, which may be `switches`."""
        edges = min(switch, self.edges)
        aggs = min(switch - edges, self.aggs)
        return (
            edges * (self.hosts_per_edge + self.edge_uplinks)
            + aggs * (self.edges_per_pod * self.edge_agg_links + self.agg_uplinks)
            + (switch - edges - aggs) * self.pods_per_plane * self.agg_core_links
        )

    def first_link(self, switch: int) -> int:
        """Return the link that is the first uplink of an edge or agg."""
        if switch < self.first_agg:
            return switch * self.edge_uplinks

        return self.edge_links + (switch - self.first_agg) * self.agg_uplinks

    def link_ends(self, link: int) -> tuple[LinkEnd, LinkEnd]:
        """Return the lower and the upper end of an inter-switch link."""
        if link < self.edge_links:
            lower, uplink = divmod(link, self.edge_uplinks)
        else:
            lower, uplink = divmod(link - self.edge_links, self.agg_uplinks)
            lower += self.first_agg

        port = self.uplink_port(lower, uplink)
        upper = self.neighbour(lower, port)
        assert upper is not None
        return LinkEnd(lower, port), upper

    def link_at(self, switch: int, port: int) -> int | None:
        """Return the inter-switch link behind a port, None where it leads to a host."""
        far = self.neighbour(switch, port)
        if far is None:
            return None

        lower, lower_port = (switch, port) if switch < far.switch else far
        return self.first_link(lower) + lower_port - self.uplink_port(lower, 0)

    def layer_of(self, switch: int, port: int) -> str:
        """Return the layer (of SWITCH_LAYERS) of the queue at a switch's port."""
        is_up = port > self.downlinks(switch)
        match self.tier(switch):
            case Tier.EDGE:
                return LAYERS[1] if is_up else LAYERS[5]
            case Tier.AGG:
                return LAYERS[2] if is_up else LAYERS[4]
            case Tier.CORE:
                return LAYERS[3]

    def level_of(self, switch: int, port: int) -> Level:
        """Return the level of the link behind a switch's port."""
        return Level(self.tier(switch) - (port <= self.downlinks(switch)) + 1)

    def neighbour(self, switch: int, port: int) -> LinkEnd | None:
        """Return the link end that a switch's port leads to, None for a host (`host_at`)."""
        tier = self.tier(switch)
        major, minor = self.position(switch)
        down = self.downlinks(switch)
        if tier is Tier.CORE:
            below, parallel = divmod(port - 1, self.agg_core_links)
            plane, position = divmod(major, self.aggs_per_pod)
            agg = self.agg(plane * self.pods_per_plane + below, position)
            return LinkEnd(agg, self.uplink_port(agg, minor * self.agg_core_links + parallel))

        if tier is Tier.AGG:
            if port > down:
                index, parallel = divmod(port - down - 1, self.agg_core_links)
                below = major % self.pods_per_plane * self.agg_core_links
                return LinkEnd(self.core(self.column(major, minor), index), below + parallel + 1)

            position, parallel = divmod(port - 1, self.edge_agg_links)
            edge = self.edge(major, position)
            return LinkEnd(edge, self.uplink_port(edge, minor * self.edge_agg_links + parallel))

        if port <= down:
            return None

        position, parallel = divmod(port - down - 1, self.edge_agg_links)
        return LinkEnd(self.agg(major, position), minor * self.edge_agg_links + parallel + 1)

    def host_at(self, edge: int, port: int) -> int:
        """Return the host at a lower port of an edge."""
        return edge * self.hosts_per_edge + port - 1

    def access(self, host: int) -> LinkEnd:
        """Return the edge switch of a host, and its port there."""
        edge, index = divmod(host, self.hosts_per_edge)
        return LinkEnd(edge, index + 1)

    def hops(self, source: int, destination: int) -> int:
        """Return the number of links between two hosts: 2 under one edge, 4 in one pod, else 6."""
        if self.edge_of_host(source) == self.edge_of_host(destination):
            return 2

        return 4 if self.pod_of_host(source) == self.pod_of_host(destination) else 6

    def levels(self, hops: int) -> list[Level]:
        """Return the levels of the links of a path with so many links."""
        return [Level(level) for level in range(hops // 2) for _ in range(2)]

    @property
    def most_hops(self) -> int:
        """Return the links of the longest path."""
        if self.pods_per_plane > 1:
            return 6

        return 4 if self.edges_per_pod > 1 else 2


def refuse_unaddressable(tree: FatTree) -> None:
    """Raise ValueError for a fabric with too few addresses (`shape.addressing`) or ports.

    An address has a byte each for the pod, the edge or agg in it and the host; a weight of a
    schedule is a byte, too.
    """
    counted = (
        (tree.pods, 255, "pods"),
        # Cores have a number beyond those of pods, one a plane.
        (tree.pods + (tree.planes if tree.cores else 1), 256, "pods and planes of cores"),
        (tree.edges_per_pod + tree.edge_uplinks, 256, "edges and links to aggs in a pod"),
        (tree.hosts_per_edge, MOST_HOSTS, "hosts at an edge"),
        (tree.agg_uplinks, 255, "links of an agg to cores"),
        (tree.most_ports, MOST_PORTS, "ports of a switch"),
    )
    if tree.machines < 2:
        raise ValueError("one host has nobody to send to")

    for count, limit, name in counted:
        if count > limit:
            raise ValueError(f"{count} {name} are more than the {limit} that can be told apart")
