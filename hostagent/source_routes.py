"""Host DR at a host: the waypoint of each packet.

A pointer per (destination host, class) walks `routes.waypoints`, a step a packet (the paper's
"Host DR"; DRB).
"""

import numpy as np

from fattree.experiment.model import Scenario
from fattree.routes.failures import Links
from fattree.routes.slow_links import NOT_SLOW, Slow
from fattree.routes.waypoints import starts, waypoints
from fattree.routes.wecmp import LinkState
from fattree.shape.addressing import agg_waypoint, core_waypoint
from fattree.shape.topology import FatTree


class SourceRoutes:
    """The pointers of one host.

    A cell is the next position + 1, 0 before its first use.
    """

    def __init__(
        self,
        scenario: Scenario,
        host: int,
        failed: Links = frozenset(),
        slow: Slow = NOT_SLOW,
    ) -> None:
        self._tree = scenario.tree
        self._seed = scenario.seed
        self._host = host
        self._links = LinkState.without(self._tree, failed, slow)
        self._addresses: dict[int, tuple[int, ...]] = {}
        self._cells: dict[tuple[int, bool], int] = {}

    def converge(self, failed: Links, slow: Slow = NOT_SLOW) -> None:
        """Take routes for the links that are down and slow now; pointers stay."""
        # "All hosts have full knowledge of the topology" (the paper): each computes its own routes.
        self._links = LinkState.without(self._tree, failed, slow)
        self._addresses.clear()

    def next_waypoint(self, peer: int, is_ack: bool) -> int | None:
        """Return the address of the next waypoint to a host, None without a route."""
        addresses = self._addresses_to(self._tree.edge_of_host(peer))
        if not addresses:
            return None

        # As in switches (p4src/include/pointer.p4): a pointer that a change of routes has left
        # beyond the end starts over at 0.
        cell = self._cells.get((peer, is_ack), 0)
        position = cell - 1 if cell else self._start(peer, is_ack, len(addresses))
        position = 0 if position >= len(addresses) else position
        self._cells[peer, is_ack] = (position + 1) % len(addresses) + 1

        return addresses[position]

    def _addresses_to(self, edge: int) -> tuple[int, ...]:
        if edge not in self._addresses:
            here = self._tree.edge_of_host(self._host)
            self._addresses[edge] = waypoint_addresses(self._tree, self._links, here, edge)

        return self._addresses[edge]

    def _start(self, peer: int, is_ack: bool, length: int) -> int:
        source, destination, steps = (np.array([number]) for number in (self._host, peer, length))
        return int(starts(self._seed, source, destination, steps)[is_ack][0])


def waypoint_addresses(
    tree: FatTree, links: LinkState, source: int, destination: int
) -> tuple[int, ...]:
    """Return the addresses of the waypoints between two edges, in order.

    They are cores, or aggs inside a pod.
    """
    steps = waypoints(tree, links, np.array([source]), np.array([destination])).sequence(0).tolist()
    pod = source // tree.edges_per_pod
    if pod == destination // tree.edges_per_pod:
        return tuple(agg_waypoint(tree, pod, uplink) for uplink, _ in steps)

    plane = pod // tree.pods_per_plane
    return tuple(core_waypoint(tree, plane, *uplinks) for uplinks in steps)
