"""The fabric by its numbering: which links there are, and which of them are up.

Edges come first, then aggs, then cores; links are numbered as uplinks, switch by switch. Ports
count from 1, downlinks first.
"""

import re
from dataclasses import dataclass

from fattree.experiment import Scenario

Place = tuple[int, int]
Down = frozenset[int]
END = re.compile(r"(edge|agg|core)(\d+)_(\d+)")


@dataclass(frozen=True)
class Tree:
    """A fabric by its counts; a leaf-spine is one pod without cores."""

    pods: int
    edges_in_pod: int
    hosts_at_edge: int
    aggs_in_pod: int
    cores_over_agg: int

    @classmethod
    def of(cls, scenario: Scenario) -> "Tree":
        half = scenario.fabric.k // 2
        return cls(scenario.fabric.k, half, half, half, half)

    @property
    def edges(self) -> int:
        return self.pods * self.edges_in_pod

    @property
    def aggs(self) -> int:
        return self.pods * self.aggs_in_pod

    @property
    def lower(self) -> int:
        """Return how many switches have uplinks or could: all but cores."""
        return self.edges + self.aggs

    @property
    def switches(self) -> int:
        return self.lower + self.aggs_in_pod * self.cores_over_agg

    @property
    def hosts_in_pod(self) -> int:
        return self.edges_in_pod * self.hosts_at_edge

    @property
    def hosts(self) -> int:
        return self.pods * self.hosts_in_pod

    @property
    def links(self) -> int:
        return self.edges * self.aggs_in_pod + self.aggs * self.cores_over_agg

    def is_edge(self, switch: int) -> bool:
        return switch < self.edges

    def is_core(self, switch: int) -> bool:
        return switch >= self.lower

    def uplinks(self, switch: int) -> int:
        if self.is_core(switch):
            return 0
        return self.aggs_in_pod if self.is_edge(switch) else self.cores_over_agg

    def first_uplink(self, switch: int) -> int:
        """Return the port of a switch's first uplink, the one behind its downlinks."""
        if self.is_core(switch):
            return self.pods + 1
        return 1 + (self.hosts_at_edge if self.is_edge(switch) else self.edges_in_pod)

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
            return self.agg(self.pod(switch), uplink)
        return self.core(self.position(switch), uplink)

    def below(self, switch: int, host: int) -> int | None:
        """Return the port towards a host that is below a switch, else None."""
        if self.is_core(switch):
            return self.pod_of(host) + 1
        if self.is_edge(switch):
            return host % self.hosts_at_edge + 1 if self.edge_of(host) == switch else None
        if self.pod_of(host) != self.pod(switch):
            return None
        return self.edge_of(host) % self.edges_in_pod + 1

    def cables(self) -> dict[Place, Place]:
        """Return the far end of every port between switches, as (switch, port)."""
        ends = {}
        for lower in range(self.lower):
            for uplink in range(self.uplinks(lower)):
                # An agg has its edges in order on its downlinks, a core has its pods.
                downlink = self.position(lower) if self.is_edge(lower) else self.pod(lower)
                near = lower, self.first_uplink(lower) + uplink
                far = self.above(lower, uplink), downlink + 1
                ends[near] = far
                ends[far] = near
        return ends

    def link_of(self, switch: int, uplink: int) -> int:
        """Return the number of a switch's uplink among all links."""
        if self.is_edge(switch):
            return switch * self.aggs_in_pod + uplink
        of_edges = self.edges * self.aggs_in_pod
        return of_edges + (switch - self.edges) * self.cores_over_agg + uplink

    def link(self, one: Place, other: Place) -> int:
        """Return the link between two ports; the lower switch's uplink gives it its number."""
        switch, port = min(one, other)
        return self.link_of(switch, port - self.first_uplink(switch))

    def link_named(self, name: str) -> int:
        """Return the link of a name like edge0_1-agg0_0 or agg0_0-core0_1."""
        lower, upper = sorted(self.switch_named(end) for end in name.split("-"))
        uplinks = range(self.uplinks(lower))
        return next(self.link_of(lower, up) for up in uplinks if self.above(lower, up) == upper)

    def host_named(self, name: str) -> int:
        """Return the host of a name like h0_1_0."""
        pod, edge, index = map(int, name[1:].split("_"))
        return (pod * self.edges_in_pod + edge) * self.hosts_at_edge + index

    def switch_named(self, name: str) -> int:
        found = END.fullmatch(name)
        assert found, name
        first, size = {
            "edge": (0, self.edges_in_pod),
            "agg": (self.edges, self.aggs_in_pod),
            "core": (self.lower, self.cores_over_agg),
        }[found[1]]
        return first + int(found[2]) * size + int(found[3])

    def hops(self, source: int, destination: int) -> int:
        """Return the links on a path between two hosts."""
        if self.edge_of(source) == self.edge_of(destination):
            return 2
        return 4 if self.pod_of(source) == self.pod_of(destination) else 6


@dataclass(frozen=True)
class Links:
    """The tree without the links that are down."""

    tree: Tree
    down: Down

    def is_up(self, switch: int, uplink: int) -> bool:
        return self.tree.link_of(switch, uplink) not in self.down

    def cores(self, position: int, pods: tuple[int, int]) -> list[int]:
        """Return the cores above the aggs of a position that join two pods."""
        aggs = [self.tree.agg(pod, position) for pod in pods]
        cores = range(self.tree.cores_over_agg)
        return [index for index in cores if all(self.is_up(agg, index) for agg in aggs)]

    def paths_to_pod(self, edge: int, pod: int, uplink: int) -> int:
        """Return how many paths lead through an edge's uplink to a pod's agg."""
        if not self.is_up(edge, uplink):
            return 0
        own = self.tree.pod(edge)
        return 1 if own == pod else len(self.cores(uplink, (own, pod)))

    def paths(self, source: int, destination: int) -> list[tuple[int, int]]:
        """Return the (agg position, core index) of every path between two edges, core by core.

        In a pod the index is 0. Steps that follow each other so differ in the agg, the first hop.
        """
        pods = self.tree.pod(source), self.tree.pod(destination)
        if source == destination:
            return []
        aggs = range(self.tree.aggs_in_pod)
        both = [agg for agg in aggs if self.is_up(source, agg) and self.is_up(destination, agg)]
        if pods[0] == pods[1]:
            return [(agg, 0) for agg in both]
        return [
            (agg, core)
            for core in range(self.tree.cores_over_agg)
            for agg in both
            if core in self.cores(agg, pods)
        ]
