"""Host DR's routes: the sequence of waypoints through which a host sends to another.

They are those of Cao et al. (2013), DRB; the paper's "Host DR". Between pods a waypoint is a core,
in one pod an aggregation switch, under one edge there is none. With a aggs in a pod, step n of the
full sequence goes through agg n mod a and, between pods, its core n div a: the digits of n
reversed, so that consecutive packets part at the first hop. Waypoints that either host cannot reach
are left out; with slow links, paths recur in proportion to their capacity. A pointer per (source
host, destination host, class) walks the sequence; that of ACKs starts half a sequence after that of
data.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fattree.draws import Stream, below, component, mix
from fattree.routes.wecmp import LinkState
from fattree.shape.topology import FatTree

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
    carried = _Carried.of(tree, links)
    rows = [
        _steps(tree, carried, *pair)
        for pair in zip(source_edges.tolist(), destination_edges.tolist(), strict=True)
    ]

    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    steps = np.concatenate(rows) if rows else np.empty((0, 2), dtype=np.uint8)
    return Waypoints(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), steps)


class _Carried(NamedTuple):
    """The capacities of links (`fattree.routes.wecmp`).

    Of edges' uplinks (edges, uplinks) and of aggs' (pods, agg positions, uplinks), up and down.
    """

    up: Int64
    down: Int64
    to_cores: Int64
    from_cores: Int64

    @classmethod
    def of(cls, tree: FatTree, links: LinkState) -> "_Carried":
        shape = (tree.pods, tree.aggs_per_pod, tree.agg_uplinks)
        up, to_cores = links.ascents(tree)
        down, from_cores = links.descents(tree)
        return cls(up, down, to_cores.reshape(shape), from_cores.reshape(shape))


def _steps(tree: FatTree, carried: _Carried, source: int, destination: int) -> Bytes:
    if source == destination:
        return np.empty((0, 2), dtype=np.uint8)

    # An agg that either edge has lost is of no use, whichever cores it has.
    pods = (source // tree.edges_per_pod, destination // tree.edges_per_pod)
    through = np.minimum(carried.up[source], carried.down[destination])[None]
    if pods[0] != pods[1]:
        joined = np.minimum(carried.to_cores[pods[0]], carried.from_cores[pods[1]])
        through = np.minimum(np.repeat(joined, tree.edge_agg_links, axis=0).T, through)

    # Rows are core indices, and argwhere goes row by row: the agg changes fastest, which is the
    # reversal of the digits. Interleaved as schedules are: cycle c has the paths that carry c.
    through = through // max(1, int(np.gcd.reduce(through, axis=None)))
    cycles = [np.argwhere(through >= c) for c in range(1, int(through.max(initial=0)) + 1)]
    steps = np.concatenate(cycles) if cycles else np.empty((0, 2))
    return np.ascontiguousarray(steps[:, ::-1], dtype=np.uint8)


def starts(seed: int, source: Int64, destination: Int64, length: Int64) -> tuple[Int64, Int64]:
    """Return where the pointers from hosts `source` to `destination` start: for data, for ACKs.

    They are 0 where there is no step.
    """
    # Half a sequence apart, so that data and ACKs of a pair do not meet (a choice).
    data = below(mix(seed, component(Stream.WAYPOINT, 0) + source, destination), length)
    return data, (data + length // 2) % np.maximum(length, 1)
