"""Southbound over parallel links: which member of a bundle leads down to a host.

Southbound packets have one way but for parallel links, and hosts are dealt out among the links that
are up: the n-th host of an edge (at an agg) or of a pod (at a core) takes member n mod count. So
southbound routes stay prefixes and ports, a flow keeps its order, and a permutation or an
all-to-all loads the members of a bundle alike.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fattree.routes.wecmp import LinkState
from fattree.shape.topology import FatTree, Tier


class Bundles(NamedTuple):
    """Bundles that lead down: members (rows, parallel), those that are up first, and how many are.

    Where none is up, all count as such: the routes above avoid the bundle.
    """

    members: NDArray[np.uint8]
    counts: NDArray[np.int32]

    @classmethod
    def of(cls, up: NDArray[np.bool_]) -> "Bundles":
        """Return bundles by whether their members are up, (..., parallel)."""
        rows = up.reshape(-1, up.shape[-1])
        counts = rows.sum(axis=1)
        members = np.argsort(~rows, axis=1, kind="stable").astype(np.uint8)
        return cls(members, np.where(counts == 0, rows.shape[1], counts).astype(np.int32))

    @classmethod
    def picked(cls, bundles: Sequence["Bundles"], index: NDArray[np.int64]) -> "Bundles":
        """Return bundles of which each row is that of `bundles[index[row]]`."""
        rows = np.arange(len(index))
        return cls(
            np.stack([state.members for state in bundles])[index, rows],
            np.stack([state.counts for state in bundles])[index, rows],
        )

    def member(self, row: int, number: int) -> int:
        """Return the member of a bundle that the host of a number takes."""
        return int(self.members[row, number % self.counts[row]])


def agg_bundles(tree: FatTree, links: LinkState) -> Bundles:
    """Return the bundles to edges: row agg * edges_per_pod + position."""
    shape = (tree.pods, tree.edges_per_pod, tree.aggs_per_pod, tree.edge_agg_links)
    return Bundles.of(links.edge_agg.reshape(shape).transpose(0, 2, 1, 3))


def core_bundles(tree: FatTree, links: LinkState) -> Bundles:
    """Return the bundles to pods: row core * pods_per_plane + pod in its plane."""
    shape = (
        *(tree.planes, tree.pods_per_plane, tree.aggs_per_pod),
        *(tree.cores_per_agg, tree.agg_core_links),
    )
    return Bundles.of(links.agg_core.reshape(shape).transpose(0, 2, 3, 1, 4))


def has_choice(tree: FatTree, switch: int) -> bool:
    """Return whether a switch has parallel links down, so that failures change its routes."""
    match tree.tier(switch):
        case Tier.EDGE:
            return False
        case Tier.AGG:
            return tree.edge_agg_links > 1
        case Tier.CORE:
            return tree.agg_core_links > 1


def host_ports(tree: FatTree, links: LinkState, switch: int) -> dict[int, int]:
    """Return the port towards each host below a switch that has parallel links down."""
    if tree.tier(switch) is Tier.AGG:
        bundles = agg_bundles(tree, links)
        pod, _ = tree.position(switch)
        first = (switch - tree.first_agg) * tree.edges_per_pod
        return {
            (tree.edge(pod, position)) * tree.hosts_per_edge + index: 1
            + position * tree.edge_agg_links
            + bundles.member(first + position, index)
            for position in range(tree.edges_per_pod)
            for index in range(tree.hosts_per_edge)
        }

    bundles = core_bundles(tree, links)
    first = (switch - tree.first_core) * tree.pods_per_plane
    base = tree.first_pod(switch) * tree.hosts_per_pod
    return {
        base + pod * tree.hosts_per_pod + number: 1
        + pod * tree.agg_core_links
        + bundles.member(first + pod, number)
        for pod in range(tree.pods_per_plane)
        for number in range(tree.hosts_per_pod)
    }
