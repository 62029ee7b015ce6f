"""Host DR's routes: the sequence of waypoints through which a host sends to another.

They are those of Cao et al. (2013), DRB; the paper's "Host DR". Between pods a waypoint is a core,
in one pod an aggregation switch, under one edge there is none. With a aggs in a pod, step n of the
full sequence goes through agg n mod a and, between pods, its core n div a: the digits of n
reversed, so that consecutive packets part at the first hop. What either host cannot reach is left
out. A pointer per (source host, destination host, class) walks the sequence; that of ACKs starts
half a sequence after that of data.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fattree.draws import Stream, below, component, mix
from fattree.topology import FatTree
from fattree.wecmp import LinkState, reached

Int64 = NDArray[np.int64]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Waypoints:
    """Sequences of pairs of edges: steps[offset[row] : offset[row + 1]] are a row's steps.

    A step is (uplink of the edge, uplink of the agg), the latter 0 in a pod.
    """

    offset: Int64
    steps: Bytes

    def sequence(self, row: int) -> Bytes:
        """Return the (edge's uplink, agg's uplink) of a row's steps, shape (steps, 2)."""
        return self.steps[self.offset[row] : self.offset[row + 1]]


def waypoints(
    tree: FatTree, links: LinkState, source_edges: Int64, destination_edges: Int64
) -> Waypoints:
    """Return one row per pair of edges."""
    rows = [
        _steps(tree, links, *pair)
        for pair in zip(source_edges.tolist(), destination_edges.tolist(), strict=True)
    ]

    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    steps = np.concatenate(rows) if rows else np.empty((0, 2), dtype=np.uint8)
    return Waypoints(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), steps)


def _steps(tree: FatTree, links: LinkState, source: int, destination: int) -> Bytes:
    if source == destination:
        return np.empty((0, 2), dtype=np.uint8)

    # An agg that either edge has lost is of no use, whichever cores it has.
    pods = (source // tree.edges_per_pod, destination // tree.edges_per_pod)
    reaches = links.edge_agg[source] & reached(links.edge_agg[destination], tree.edge_agg_links)

    if pods[0] == pods[1]:
        aggs = np.flatnonzero(reaches)
        return np.stack([aggs, np.zeros_like(aggs)], axis=1).astype(np.uint8)

    # Rows of the transposed array are core indices, and argwhere goes row by row: the agg changes
    # fastest, which is the reversal of the digits.
    up = links.agg_core.reshape(tree.pods, tree.aggs_per_pod, tree.agg_uplinks)
    joined = up[pods[0]] & reached(up[pods[1]], tree.agg_core_links)
    through = (np.repeat(joined, tree.edge_agg_links, axis=0) & reaches[:, None]).T
    return np.ascontiguousarray(np.argwhere(through)[:, ::-1], dtype=np.uint8)


def starts(seed: int, source: Int64, destination: Int64, length: Int64) -> tuple[Int64, Int64]:
    """Return where the pointers from hosts `source` to `destination` start: for data, for ACKs.

    They are 0 where there is no step.
    """
    # Half a sequence apart, so that data and ACKs of a pair do not meet (a choice).
    data = below(mix(seed, component(Stream.WAYPOINT, 0) + source, destination), length)
    return data, (data + length // 2) % np.maximum(length, 1)
