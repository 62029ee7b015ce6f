"""W-ECMP: how many surviving paths lead through each uplink, for every (switch, destination).

The weight of an edge's uplink towards a destination edge is the number of paths that survive
through that agg; an agg weighs each core that still reaches the destination pod equally (appendix
F, simulator model).

If links are slow rather than dead, a path counts with its capacity: the least of its links'
capacities, in eighths of their rates (rounded, at least 1). So a link at its full rate counts
eight, and without slow links nothing changes.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fattree.routes.iwrr import simplify
from fattree.routes.slow_links import NOT_SLOW, Slow
from fattree.shape.topology import FatTree

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Scalar = TypeVar("Scalar", bound=np.generic)
# The weight of a link at its full rate if some link is slow: with finer shares, schedules would be
# longer than the little that is gained.
EIGHTHS = 8
# No weight is larger then: it is the weight of a fat-tree of k = 128 without slow links, and
# schedules grow with their weights.
MOST_WEIGHT = 64


@dataclass(frozen=True, slots=True, eq=False)
class LinkState:
    """Which inter-switch links are up: `edge_agg[edge, uplink]`, `agg_core[agg, uplink]`.

    If some link is slow, `up` and `down` are the capacities of all links towards cores and from
    them, by index, of the `units` of a full link.
    """

    edge_agg: Bools
    agg_core: Bools
    units: int = 1
    up: Ints | None = None
    down: Ints | None = None

    @classmethod
    def without(
        cls, tree: FatTree, failed: frozenset[int] = frozenset(), slow: Slow = NOT_SLOW
    ) -> "LinkState":
        """Return the state in which the links of `failed` (indices) are down, and `slow` ones slow.

        A link that loses less than a sixteenth of its rate counts as full.
        """
        # Links are numbered by lower end and uplink, edges' first (`topology`).
        is_up = np.ones(tree.links, dtype=np.bool_)
        is_up[sorted(failed)] = False
        edge_agg, agg_core = _rows(tree, is_up)
        up = np.full(tree.links, EIGHTHS)
        down = np.full(tree.links, EIGHTHS)
        for link, *shares in slow:
            up[link], down[link] = map(eighths, shares)

        if min(up.min(initial=EIGHTHS), down.min(initial=EIGHTHS)) == EIGHTHS:
            return cls(edge_agg, agg_core)

        return cls(edge_agg, agg_core, EIGHTHS, up * is_up, down * is_up)

    @property
    def is_whole(self) -> bool:
        """Return whether all links are up, and none is slow."""
        return bool(self.units == 1 and self.edge_agg.all() and self.agg_core.all())

    @property
    def at_full_rates(self) -> "LinkState":
        """Return the same links without their rates: a slow link counts as a full link."""
        return LinkState(self.edge_agg, self.agg_core)

    def ascents(self, tree: FatTree) -> tuple[Ints, Ints]:
        """Return links' capacities towards cores, in the shapes of `edge_agg` and `agg_core`."""
        return _rows(tree, self._flat() if self.up is None else self.up)

    def descents(self, tree: FatTree) -> tuple[Ints, Ints]:
        """Return the same from cores; of parallel links each counts as the slowest that is up.

        They share southbound traffic alike (`routes.southbound`), so no more may come than that.
        """
        edge_agg, agg_core = _rows(tree, self._flat() if self.down is None else self.down)
        return _slowest(edge_agg, tree.edge_agg_links), _slowest(agg_core, tree.agg_core_links)

    def _flat(self) -> Ints:
        return np.concatenate([self.edge_agg.ravel(), self.agg_core.ravel()]).astype(np.int64)


def eighths(share: float) -> int:
    """Return a share of a link's rate in eighths, rounded half up, and at least 1."""
    return max(1, floor(EIGHTHS * Fraction(str(share)) + Fraction(1, 2)))


def _rows(tree: FatTree, of_links: NDArray[Scalar]) -> tuple[NDArray[Scalar], NDArray[Scalar]]:
    edge_agg, agg_core = of_links[: tree.edge_links], of_links[tree.edge_links :]
    return (
        edge_agg.reshape(tree.edges, tree.edge_uplinks),
        agg_core.reshape(tree.aggs, tree.agg_uplinks),
    )


def _slowest(capacities: Ints, parallel: int) -> Ints:
    """Return for every link, on the last axis, the least capacity above 0 in its bundle."""
    if parallel == 1:
        return capacities

    bundles = capacities.reshape(*capacities.shape[:-1], -1, parallel)
    least = np.where(bundles > 0, bundles, np.iinfo(np.int64).max).min(axis=-1)
    spread: Ints = np.repeat(np.where(bundles.any(axis=-1), least, 0), parallel, axis=-1)
    return spread


def agg_weights(tree: FatTree, links: LinkState) -> Ints:
    """Return weights[pod, agg position, destination pod, uplink]: the paths there through it."""
    # A core joins the aggs of one position: both of them must have a link to it. Southbound packets
    # have no choice but between parallel links, so paths are counted on the way up.
    shape = (tree.pods, tree.aggs_per_pod, tree.agg_uplinks)
    up = links.ascents(tree)[1].reshape(shape)
    down = links.descents(tree)[1].reshape(shape)
    plane = np.arange(tree.pods) // tree.pods_per_plane
    meet = (plane[:, None] == plane)[:, None, :, None]
    joined: Ints = np.minimum(up[:, :, None, :], down.transpose(1, 0, 2)[None, :, :, :]) * meet
    return joined


def reach(tree: FatTree, links: LinkState) -> Bools:
    """Return reach[edge, uplink]: whether an edge is below the agg of that uplink of any edge."""
    return reached(links.edge_agg, tree.edge_agg_links)


def reached(up: Bools, parallel: int) -> Bools:
    """Return for every link, on the last axis, whether any of its bundle is up."""
    if parallel == 1:
        return up

    bundles = up.reshape(*up.shape[:-1], -1, parallel).any(axis=-1)
    spread: Bools = np.repeat(bundles, parallel, axis=-1)
    return spread


class Paths:
    """The paths through each uplink of an edge, or their capacities if links are slow."""

    def __init__(self, tree: FatTree, links: LinkState) -> None:
        self._tree = tree
        self._up = links.ascents(tree)[0]
        self._down = links.descents(tree)[0]
        self._units = links.units
        is_behind = ((self._down > 0) & (self._down < links.units)).any(axis=1)
        # The edges behind slow links: other weights than to their pod may lead to them.
        self.apart: Ints = np.flatnonzero(is_behind)
        # [units, pod, agg position, destination pod]: the paths to that pod's agg, if neither the
        # link to the first agg nor the link from the last carries more.
        weights = self._through_cores = agg_weights(tree, links)
        pods = np.arange(tree.pods)
        tables = [np.zeros(weights.shape[:3], dtype=np.int64)]
        for bound in range(1, links.units + 1):
            limited = weights if bound == links.units else np.minimum(weights, bound)
            table = limited.sum(axis=3)
            # Inside the edge's own pod the agg itself is the destination.
            table[pods, :, pods] = bound
            tables.append(table)

        self._tables = np.stack(tables)

    def through_cores(self) -> Ints:
        """Return weights[pod, agg position, destination pod, uplink], as `agg_weights` does."""
        return self._through_cores

    def to_pods(self) -> Ints:
        """Return weights[edge, destination pod, uplink]: paths to that pod's agg of the position.

        Inside the edge's own pod the agg itself is the destination: one path.
        """
        tree = self._tree
        full = np.repeat(self._tables[-1].transpose(0, 2, 1), tree.edge_agg_links, axis=2)
        weights: Ints = np.repeat(full, tree.edges_per_pod, axis=0) * (self._up > 0)[:, None, :]
        for edge, uplink in np.argwhere((self._up > 0) & (self._up < self._units)).tolist():
            table = self._tables[self._up[edge, uplink], edge // tree.edges_per_pod]
            weights[edge, :, uplink] = table[uplink // tree.edge_agg_links]

        return weights

    def to_edges(self, edge: int, destinations: Ints) -> Ints:
        """Return weights[destination, uplink] of one edge towards others."""
        tree = self._tree
        position = np.arange(tree.edge_uplinks) // tree.edge_agg_links
        pods = destinations // tree.edges_per_pod
        least = np.minimum(self._up[edge], self._down[destinations])
        weights: Ints = self._tables[
            least, edge // tree.edges_per_pod, position[None, :], pods[:, None]
        ]
        return weights


def pod_weights(tree: FatTree, links: LinkState) -> Ints:
    """Return weights[edge, destination pod, uplink], as `Paths.to_pods` does."""
    return Paths(tree, links).to_pods()


def small(weights: Ints) -> Ints:
    """Return rows of weights in proportion, none above MOST_WEIGHT.

    They are divided by their greatest common divisor, then halved, rounding up, as often as needed:
    a path with any capacity keeps a weight.
    """
    rows: Ints = simplify(weights)
    while (large := rows.max(axis=-1, keepdims=True, initial=0) > MOST_WEIGHT).any():
        rows = np.where(large, (rows + 1) // 2, rows)

    return rows
