"""The weights that BGP gives: whole percents of path counts that each switch announces.

A switch announces a route with the number of its own next hops as the bandwidth (the link-bandwidth
extended community, draft-ietf-idr-link-bandwidth; FRR: `set extcommunity bandwidth
num-multipaths`), and weighs each next hop by the bandwidth that it announces. FRR installs a weight
in whole percents of all bandwidth, rounded down, and at least 1 (`ofan bgp`
reads them from kernels). So at 16 uplinks an agg with all its cores has 6 %, an agg without a core
5 %.
Sessions know nothing of slow links: a link that is up counts as a full link.
"""

from collections.abc import Iterator

import numpy as np

from fattree.experiment.failures import Weights
from fattree.routes.iwrr import simplify
from fattree.routes.wecmp import Ints, LinkState, Paths, reach
from fattree.shape.topology import FatTree

PERCENT = 100


def in_percent(bandwidths: Ints) -> Ints:
    """Return rows of weights as FRR installs them: percents of their sum, rounded down."""
    total = np.maximum(bandwidths.sum(axis=-1, keepdims=True), 1)
    weights: Ints = np.maximum(bandwidths * PERCENT // total, 1) * (bandwidths > 0)
    return weights


class AnnouncedPaths:
    """The weights of each uplink as BGP announces them, in the shapes of `wecmp.Paths`."""

    def __init__(self, tree: FatTree, links: LinkState) -> None:
        self._tree = tree
        self._is_up = links.edge_agg
        self._reach = reach(tree, links)
        # A bundle of parallel links is a session each: a core has that many next hops to an agg.
        members = links.agg_core.reshape(
            tree.pods, tree.aggs_per_pod, tree.cores_per_agg, tree.agg_core_links
        )
        below_core = np.repeat(members.sum(axis=3), tree.agg_core_links, axis=2)
        is_up = members.reshape(tree.pods, tree.aggs_per_pod, tree.agg_uplinks)
        plane = np.arange(tree.pods) // tree.pods_per_plane
        meet = (plane[:, None] == plane)[:, None, :, None]
        # [pod, agg position, destination pod, uplink]: the core's next hops to that pod's agg.
        self._of_cores: Ints = (
            is_up[:, :, None, :] * below_core.transpose(1, 0, 2)[None, :, :, :] * meet
        ).astype(np.int64)

        # [pod, agg position, destination pod]: the agg's own next hops, which it announces.
        self._of_aggs: Ints = (self._of_cores > 0).sum(axis=3)
        # [edge, agg position]: an agg's next hops to an edge below it.
        self._to_edge: Ints = (
            links.edge_agg.reshape(tree.edges, tree.aggs_per_pod, tree.edge_agg_links)
            .sum(axis=2)
            .astype(np.int64)
        )

    @property
    def apart(self) -> Ints:
        """Return the edges to which other weights may lead than to their pod."""
        return np.flatnonzero(~self._is_up.all(axis=1))

    def through_cores(self) -> Ints:
        """Return weights[pod, agg position, destination pod, uplink] of the aggs."""
        return in_percent(self._of_cores)

    def to_pods(self) -> Ints:
        """Return weights[edge, destination pod, uplink] towards edges with all their links."""
        tree = self._tree
        announced = self._of_aggs.transpose(0, 2, 1).copy()
        pods = np.arange(tree.pods)
        announced[pods, pods] = tree.edge_agg_links
        of_uplinks = np.repeat(announced, tree.edge_agg_links, axis=2)
        return in_percent(
            np.repeat(of_uplinks, tree.edges_per_pod, axis=0) * self._is_up[:, None, :]
        )

    def to_edges(self, edge: int, destinations: Ints) -> Ints:
        """Return weights[destination, uplink] of one edge towards others."""
        tree = self._tree
        pod = edge // tree.edges_per_pod
        pods = destinations // tree.edges_per_pod
        announced = np.where(
            (pods == pod)[:, None], self._to_edge[destinations], self._of_aggs[pod, :, pods]
        )
        of_uplinks = np.repeat(announced, tree.edge_agg_links, axis=1)
        return in_percent(of_uplinks * self._is_up[edge] * self._reach[destinations])


def uplink_rows(tree: FatTree, links: LinkState, paths: Paths | AnnouncedPaths) -> Iterator[Ints]:
    """Yield each edge's and each agg's weights (destination edges, uplinks), 0 without a route."""
    edges = np.arange(tree.edges)
    for edge in range(tree.edges):
        rows = paths.to_edges(edge, edges)
        rows[edge] = 0
        yield rows

    pods = edges // tree.edges_per_pod
    through_cores = paths.through_cores()
    is_below = reach(tree, links)[:, :: tree.edge_agg_links]
    for agg in range(tree.aggs):
        pod, position = divmod(agg, tree.aggs_per_pod)
        # An agg has a route to an edge if the aggs of its position reach that edge.
        rows = through_cores[pod, position, pods] * is_below[:, position, None]
        rows[pods == pod] = 0
        yield rows


def uplink_ratios(tree: FatTree, failed: frozenset[int], kind: Weights) -> list[Ints]:
    """Return the rows of `uplink_rows` without some links, divided by their common divisors."""
    links = LinkState.without(tree, failed)
    paths = AnnouncedPaths(tree, links) if kind == "bgp" else Paths(tree, links)
    return [simplify(rows) for rows in uplink_rows(tree, links, paths)]
