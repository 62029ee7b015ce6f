"""The fat-tree by its numbering: which links there are, and which of them are up.

Edges come first, then aggs, then cores; the uplinks of edges and aggs are numbered alike, so that
uplink u of switch s is link s * h + u. Ports count from 1, downlinks first.
"""

import re
from dataclasses import dataclass

Place = tuple[int, int]
Down = frozenset[int]
END = re.compile(r"(edge|agg|core)(\d+)_(\d+)")


@dataclass(frozen=True)
class Tree:
    """A fat-tree of k pods; `half` is the number of uplinks of a switch."""

    k: int

    @property
    def half(self) -> int:
        return self.k // 2

    @property
    def edges(self) -> int:
        return self.k * self.half

    @property
    def switches(self) -> int:
        return 2 * self.edges + self.half**2

    @property
    def hosts(self) -> int:
        return self.edges * self.half

    @property
    def links(self) -> int:
        return 2 * self.edges * self.half

    def is_edge(self, switch: int) -> bool:
        return switch < self.edges

    def is_core(self, switch: int) -> bool:
        return switch >= 2 * self.edges

    def pod(self, switch: int) -> int:
        """Return the pod of an edge or agg."""
        return switch % self.edges // self.half

    def position(self, switch: int) -> int:
        """Return the position of an edge or agg in its pod."""
        return switch % self.half

    def agg(self, pod: int, position: int) -> int:
        return self.edges + pod * self.half + position

    def core(self, position: int, index: int) -> int:
        """Return the core `index` above the aggs of a position."""
        return 2 * self.edges + position * self.half + index

    def edge_of(self, host: int) -> int:
        return host // self.half

    def pod_of(self, host: int) -> int:
        return host // self.half**2

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
            return host % self.half + 1 if self.edge_of(host) == switch else None
        return self.edge_of(host) % self.half + 1 if self.pod_of(host) == self.pod(switch) else None

    def cables(self) -> dict[Place, Place]:
        """Return the far end of every port between switches, as (switch, port)."""
        ends = {}
        for lower in range(2 * self.edges):
            for uplink in range(self.half):
                # An agg has its edges in order on its downlinks, a core has its pods.
                downlink = self.position(lower) if self.is_edge(lower) else self.pod(lower)
                near = lower, self.half + 1 + uplink
                far = self.above(lower, uplink), downlink + 1
                ends[near] = far
                ends[far] = near
        return ends

    def link(self, one: Place, other: Place) -> int:
        """Return the link between two ports; the lower switch's uplink gives it its number."""
        switch, port = min(one, other)
        return switch * self.half + port - self.half - 1

    def link_named(self, name: str) -> int:
        """Return the link of a name like edge0_1-agg0_0 or agg0_0-core0_1."""
        lower, upper = sorted(self.switch_named(end) for end in name.split("-"))
        uplinks = [uplink for uplink in range(self.half) if self.above(lower, uplink) == upper]
        return lower * self.half + uplinks[0]

    def switch_named(self, name: str) -> int:
        found = END.fullmatch(name)
        assert found, name
        first = {"edge": 0, "agg": self.edges, "core": 2 * self.edges}[found[1]]
        return first + int(found[2]) * self.half + int(found[3])

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
        return switch * self.tree.half + uplink not in self.down

    def cores(self, position: int, pods: tuple[int, int]) -> list[int]:
        """Return the cores above the aggs of a position that join two pods."""
        aggs = [self.tree.agg(pod, position) for pod in pods]
        return [
            index for index in range(self.tree.half) if all(self.is_up(agg, index) for agg in aggs)
        ]

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
        half, pods = self.tree.half, (self.tree.pod(source), self.tree.pod(destination))
        if source == destination:
            return []
        both = [
            agg for agg in range(half) if self.is_up(source, agg) and self.is_up(destination, agg)
        ]
        if pods[0] == pods[1]:
            return [(agg, 0) for agg in both]
        return [
            (agg, core) for core in range(half) for agg in both if core in self.cores(agg, pods)
        ]
