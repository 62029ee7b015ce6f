"""The fabric by its numbering: its links, and which of them are up.

Edges come first, then aggs, then cores; links are numbered as uplinks, switch by switch. Ports
count from 1, downlinks first.
"""

import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from math import gcd

from fattree.experiment.model import Scenario

Place = tuple[int, int]
Down = frozenset[int]
END = re.compile(r"(edge|agg|core)(\d+)_(\d+)")


@dataclass(frozen=True)
class Tree:
    """A fabric by its counts; a leaf-spine is one pod without cores.

    `to_agg`, `to_core`: the number of parallel links to each agg and core. Planes are such fabrics
    one after the other; the "position" of a core also counts the positions of earlier planes.
    """

    pods: int
    edges_in_pod: int
    hosts_at_edge: int
    aggs_in_pod: int
    cores_over_agg: int
    to_agg: int = 1
    to_core: int = 1
    planes: int = 1

    @classmethod
    def of(cls, scenario: Scenario) -> "Tree":
        fabric = scenario.fabric
        planes = fabric.planes or 1
        if fabric.k:
            half = fabric.k // 2
            return cls(fabric.k * planes, half, half, half, half, planes=planes)
        assert fabric.edges_per_pod and fabric.hosts_per_edge and fabric.aggs_per_pod
        return cls(
            (fabric.pods or 1) * planes,
            fabric.edges_per_pod,
            fabric.hosts_per_edge,
            fabric.aggs_per_pod,
            fabric.cores_per_agg or 0,
            fabric.edge_agg_links or 1,
            fabric.agg_core_links or 1,
            planes,
        )

    @cached_property
    def edges(self) -> int:
        return self.pods * self.edges_in_pod

    @cached_property
    def aggs(self) -> int:
        return self.pods * self.aggs_in_pod

    @cached_property
    def lower(self) -> int:
        """Return the number of edges and aggs, the switches that may have uplinks."""
        return self.edges + self.aggs

    @cached_property
    def switches(self) -> int:
        return self.lower + self.planes * self.aggs_in_pod * self.cores_over_agg

    @cached_property
    def pods_in_plane(self) -> int:
        return self.pods // self.planes

    @cached_property
    def hosts_in_pod(self) -> int:
        return self.edges_in_pod * self.hosts_at_edge

    @cached_property
    def hosts(self) -> int:
        return self.pods * self.hosts_in_pod

    @property
    def links(self) -> int:
        return sum(self.uplinks(switch) for switch in range(self.lower))

    def is_edge(self, switch: int) -> bool:
        return switch < self.edges

    def is_core(self, switch: int) -> bool:
        return switch >= self.lower

    def uplinks(self, switch: int) -> int:
        if self.is_core(switch):
            return 0
        if self.is_edge(switch):
            return self.aggs_in_pod * self.to_agg
        return self.cores_over_agg * self.to_core

    def first_uplink(self, switch: int) -> int:
        """Return the port of a switch's first uplink, the one behind its downlinks."""
        if self.is_core(switch):
            return self.pods_in_plane * self.to_core + 1
        return 1 + (self.hosts_at_edge if self.is_edge(switch) else self.edges_in_pod * self.to_agg)

    def level(self, switch: int, port: int) -> int:
        """Return the level of a link: 0 to a host, 1 from edge to agg, 2 to a core."""
        if self.is_core(switch):
            return 2
        is_up = port >= self.first_uplink(switch)
        return int(is_up) if self.is_edge(switch) else 1 + is_up

    def pod(self, switch: int) -> int:
        """Return the pod of an edge or agg."""
        if self.is_edge(switch):
            return switch // self.edges_in_pod
        return (switch - self.edges) // self.aggs_in_pod

    def position(self, switch: int) -> int:
        """Return the position of an edge or agg in its pod."""
        if self.is_edge(switch):
            return switch % self.edges_in_pod
        return (switch - self.edges) % self.aggs_in_pod

    def agg(self, pod: int, position: int) -> int:
        return self.edges + pod * self.aggs_in_pod + position

    def core(self, position: int, index: int) -> int:
        """Return the core `index` above the aggs of a position."""
        return self.lower + position * self.cores_over_agg + index

    def edge_of(self, host: int) -> int:
        return host // self.hosts_at_edge

    def pod_of(self, host: int) -> int:
        return host // self.hosts_in_pod

    def above(self, switch: int, uplink: int) -> int:
        """Return the switch that an uplink leads to."""
        if self.is_edge(switch):
            return self.agg(self.pod(switch), uplink // self.to_agg)
        plane = self.pod(switch) // self.pods_in_plane
        return self.core(plane * self.aggs_in_pod + self.position(switch), uplink // self.to_core)

    def below(self, switch: int, host: int) -> list[int]:
        """Return the parallel ports towards a host that is below a switch."""
        if self.is_core(switch):
            first = self.pod_of(host) % self.pods_in_plane * self.to_core + 1
            return list(range(first, first + self.to_core))
        if self.is_edge(switch):
            return [host % self.hosts_at_edge + 1] if self.edge_of(host) == switch else []
        if self.pod_of(host) != self.pod(switch):
            return []
        first = self.edge_of(host) % self.edges_in_pod * self.to_agg + 1
        return list(range(first, first + self.to_agg))

    def cables(self) -> dict[Place, Place]:
        """Return the far end of every port between switches, as (switch, port)."""
        ends = {}
        for lower in range(self.lower):
            for uplink in range(self.uplinks(lower)):
                # An agg has its edges in order on its downlinks, a core has its pods.
                if self.is_edge(lower):
                    downlink = self.position(lower) * self.to_agg + uplink % self.to_agg
                else:
                    below = self.pod(lower) % self.pods_in_plane
                    downlink = below * self.to_core + uplink % self.to_core
                near = lower, self.first_uplink(lower) + uplink
                far = self.above(lower, uplink), downlink + 1
                ends[near] = far
                ends[far] = near
        return ends

    def link_of(self, switch: int, uplink: int) -> int:
        """Return the number of a switch's uplink among all links."""
        if self.is_edge(switch):
            return switch * self.uplinks(switch) + uplink
        of_edges = self.edges * self.uplinks(0)
        return of_edges + (switch - self.edges) * self.uplinks(switch) + uplink

    def link(self, end: Place, other_end: Place) -> int:
        """Return the link between two ports; the lower switch's uplink gives it its number."""
        switch, port = min(end, other_end)
        return self.link_of(switch, port - self.first_uplink(switch))

    def link_named(self, name: str) -> int:
        """Return the link of a name like edge0_1-agg0_0, agg0_0-core0_1, edge0_1-agg0_0/1."""
        ends, _, parallel = name.partition("/")
        lower, upper = sorted(self.switch_named(end) for end in ends.split("-"))
        uplinks = [up for up in range(self.uplinks(lower)) if self.above(lower, up) == upper]
        return self.link_of(lower, uplinks[int(parallel or 0)])

    def host_named(self, name: str) -> int:
        """Return the host of a name like h0_1_0."""
        pod, edge, index = map(int, name[1:].split("_"))
        return (pod * self.edges_in_pod + edge) * self.hosts_at_edge + index

    def switch_named(self, name: str) -> int:
        parts = END.fullmatch(name)
        assert parts, name
        first, size = {
            "edge": (0, self.edges_in_pod),
            "agg": (self.edges, self.aggs_in_pod),
            "core": (self.lower, self.cores_over_agg),
        }[parts[1]]
        return first + int(parts[2]) * size + int(parts[3])

    def hops(self, source: int, destination: int) -> int:
        """Return the links on a path between two hosts."""
        if self.edge_of(source) == self.edge_of(destination):
            return 2
        return 4 if self.pod_of(source) == self.pod_of(destination) else 6


@cache
def eighths(share: float) -> int:
    """Return a share in eighths, rounded half up, at least 1."""
    return max(1, int(Fraction(str(share)) * 8 + Fraction(1, 2)))


@dataclass(frozen=True)
class Links:
    """The tree without the links that are down.

    `slow` has the share of their rate that slow directions carry: (link, is it the way up).
    """

    tree: Tree
    down: Down
    slow: dict[tuple[int, bool], float] = field(default_factory=dict)

    def is_up(self, switch: int, uplink: int) -> bool:
        return self.tree.link_of(switch, uplink) not in self.down

    @property
    def counts_eighths(self) -> bool:
        """Whether a link is so slow that rates are counted in eighths."""
        return any(eighths(share) < 8 for share in self.slow.values())

    def carried(self, switch: int, uplink: int, up: bool) -> int:
        """Return a link's capacity: 0 if it is down, else 1, or its eighths if any link is slow."""
        if not self.is_up(switch, uplink):
            return 0
        if not self.counts_eighths:
            return 1
        return eighths(self.slow.get((self.tree.link_of(switch, uplink), up), 1))

    def carried_down(self, lower: int, upper: int) -> int:
        """Return the least capacity of the live parallel links down, 0 if none is up."""
        uplinks = [
            up for up in range(self.tree.uplinks(lower)) if self.tree.above(lower, up) == upper
        ]
        return min(
            (self.carried(lower, up, False) for up in uplinks if self.is_up(lower, up)), default=0
        )

    def over_core(self, agg: int, uplink: int, pod: int) -> int:
        """Return the capacity of an agg's uplink to the agg of its position in another pod."""
        if pod // self.tree.pods_in_plane != self.tree.pod(agg) // self.tree.pods_in_plane:
            return 0
        below = self.tree.agg(pod, self.tree.position(agg))
        down = self.carried_down(below, self.tree.above(agg, uplink))
        return min(self.carried(agg, uplink, True), down)

    def to_pod(self, edge: int, pod: int, uplink: int) -> int:
        """Return the capacity of an edge's uplink to a pod's agg: the sum over its paths."""
        return self.through(edge, pod, uplink, capacity=8)

    def to_edge(self, edge: int, destination: int, uplink: int) -> int:
        """Return the capacity of an edge's uplink to another edge."""
        pod = self.tree.pod(destination)
        below = self.tree.agg(pod, self.tree.position(self.tree.above(edge, uplink)))
        return self.through(edge, pod, uplink, capacity=self.carried_down(destination, below))

    def through(self, edge: int, pod: int, uplink: int, capacity: int) -> int:
        """Return the sum of the capacities of all paths to a pod, each at most `capacity`."""
        first = min(self.carried(edge, uplink, True), capacity)
        if self.tree.pod(edge) == pod:
            return first
        agg = self.tree.above(edge, uplink)
        return sum(
            min(first, self.over_core(agg, last, pod)) for last in range(self.tree.uplinks(agg))
        )

    def alive(self, lower: int, upper: int) -> list[bool]:
        """Return which of the parallel links between two switches are up."""
        uplinks = range(self.tree.uplinks(lower))
        return [self.is_up(lower, up) for up in uplinks if self.tree.above(lower, up) == upper]

    def leads_down(self, edge: int, uplink: int) -> bool:
        """Whether the agg behind an uplink, of any edge, reaches this edge of its own pod."""
        return any(self.alive(edge, self.tree.above(edge, uplink)))

    def paths(self, source: int, destination: int) -> list[tuple[int, int]]:
        """Return the uplinks (edge's, agg's) of every path up between two edges, by the agg's
        uplink.

        Within a pod the agg's uplink is 0. So consecutive steps differ in the first hop. With slow
        links paths are repeated, cycle by cycle, in proportion to their capacity.
        """
        tree = self.tree
        pod = tree.pod(destination)
        if source == destination:
            return []
        capacities = {}
        for last in range(tree.cores_over_agg * tree.to_core if tree.pod(source) != pod else 1):
            for up in range(tree.uplinks(source)):
                agg = tree.above(source, up)
                ends = self.carried_down(destination, tree.agg(pod, tree.position(agg)))
                carried = min(self.carried(source, up, True), ends)
                if tree.pod(source) != pod:
                    carried = min(carried, self.over_core(agg, last, pod))
                capacities[up, last] = carried

        divisor = gcd(*capacities.values()) or 1
        cycles = range(1, max(capacities.values(), default=0) // divisor + 1)
        return [
            path for cycle in cycles for path in capacities if capacities[path] // divisor >= cycle
        ]

    def port_down(self, switch: int, host: int) -> int | None:
        """Return the port towards a host below a switch; parallel links share the hosts."""
        ports = self.tree.below(switch, host)
        if not ports:
            return None
        if len(ports) == 1:
            return ports[0]

        if self.tree.is_core(switch):
            number = host % self.tree.hosts_in_pod
            column = (switch - self.tree.lower) // self.tree.cores_over_agg
            position = column % self.tree.aggs_in_pod
            up = self.alive(self.tree.agg(self.tree.pod_of(host), position), switch)
        else:
            number = host % self.tree.hosts_at_edge
            up = self.alive(self.tree.edge_of(host), switch)
        usable = [port for port, is_up in zip(ports, up, strict=True) if is_up] or ports
        return usable[number % len(usable)]
