"""A workload as a graph: transfers between ranks, computations at ranks, and who waits for whom.

Ranks are numbers; which host is which rank is decided when a graph becomes `Flows`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from fattree.demand.flows import Flows, chain_ends, cut, depths, entries, offsets, refuse_remote
from fattree.errors import TrafficError
from fattree.shape.topology import FatTree

Int64 = NDArray[np.int64]
NOTHING = np.empty(0, dtype=np.int64)

# As many as a flow's number has room for, with subflows; the arrays then take gigabytes.
MOST_NODES = 1 << 25


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Nodes as int64 arrays of one length, and edges: node `waiting[e]` waits for `awaited[e]`.

    A transfer has `size` bytes; a computation has none, its rank at both ends, and `compute_ps`.
    With `in_turn` a rank's transfers leave one after the other, as each may begin. `nic` is each
    transfer's NIC, at both of its ends, where the workload names them.
    """

    source: Int64
    destination: Int64
    size: Int64
    compute_ps: Int64
    waiting: Int64 = field(default_factory=lambda: NOTHING)
    awaited: Int64 = field(default_factory=lambda: NOTHING)
    in_turn: bool = field(default=False, kw_only=True)
    nic: Int64 | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return len(self.source)

    @property
    def nics(self) -> int:
        """Return the number of NICs that transfers name: the highest, counted from 0, or none."""
        return 0 if self.nic is None else 1 + int(self.nic.max(initial=0))

    @property
    def ranks(self) -> int:
        """Return the number of ranks: the highest, counted from 0."""
        return 1 + int(max(self.source.max(initial=-1), self.destination.max(initial=-1)))

    def after(self) -> tuple[Int64, Int64]:
        """Return the edges as a CSR (offset, awaited), as `Flows` has them."""
        order = np.argsort(self.waiting, kind="stable")
        lengths = np.bincount(self.waiting, minlength=len(self))
        return offsets(lengths), self.awaited[order]

    def depth(self) -> Int64:
        """Return how many nodes must be complete one after the other before each."""
        return depths(*self.after())


def transfers(source: Int64, destination: Int64, size: Int64) -> Graph:
    """Return a graph of transfers of `size` bytes that wait for nothing."""
    return Graph(source, destination, size, np.zeros(len(source), dtype=np.int64))


def joined(graphs: Sequence[Graph]) -> Graph:
    """Return several graphs of the same ranks as a graph; they do not wait for each other."""
    first = offsets(np.array([len(graph) for graph in graphs]))
    return Graph(
        *(
            np.concatenate([getattr(graph, name) for graph in graphs])
            for name in ("source", "destination", "size", "compute_ps")
        ),
        *(
            np.concatenate(
                [getattr(graph, name) + base for graph, base in zip(graphs, first, strict=False)]
            )
            for name in ("waiting", "awaited")
        ),
    )


def in_rounds(graph: Graph, number: Int64) -> Graph:
    """Let every transfer wait for its source's own last round before it.

    That is all that the source has sent and received in it. `number` is each transfer's round.
    """
    # A rank takes part in a round as a source or a destination. Sorted by (rank, round), one part
    # follows the other, and equal ones are a group.
    count = len(graph)
    rank = np.concatenate([graph.source, graph.destination])
    rounds = int(number.max(initial=0)) + 1
    keys, group_of = np.unique(rank * rounds + np.tile(number, 2), return_inverse=True)
    member = np.argsort(group_of, kind="stable") % count
    offset = offsets(np.bincount(group_of, minlength=len(keys)))

    group = group_of[:count]
    before = group - 1
    has_one = (group > 0) & (keys[before] // rounds == graph.source)
    chosen = np.flatnonzero(has_one)
    lengths = np.diff(offset)[before[chosen]]
    awaited = member[entries(offset, before[chosen])]

    return replace(graph, waiting=np.repeat(chosen, lengths), awaited=awaited)


def pipelined(graph: Graph, chunks: int) -> Graph:
    """Cut every transfer into chunks; each waits for the chunk of its number of awaited transfers.

    The chunks from a rank to another go one after the other, by depth, transfer and chunk.
    """
    refuse_many(len(graph) * chunks)
    depth = np.repeat(graph.depth(), chunks)
    node = np.repeat(np.arange(len(graph)), chunks)
    part = np.tile(np.arange(chunks), len(graph))
    source = graph.source[node]
    destination = graph.destination[node]

    # By pair of ranks, in the order in which they go: neighbours of one pair are a chain.
    order = np.lexsort((part, node, depth, destination, source))
    is_next = (np.diff(source[order]) == 0) & (np.diff(destination[order]) == 0)
    edges = [
        ((waits[:, None] * chunks + np.arange(chunks)).ravel(), order[behind][is_next])
        for waits, behind in ((graph.waiting, slice(1, None)), (graph.awaited, slice(None, -1)))
    ]
    pairs = np.unique(np.stack([np.concatenate(ends) for ends in edges]), axis=1)

    return Graph(
        source=source,
        destination=destination,
        size=-(-graph.size[node] // chunks),
        compute_ps=np.zeros(len(node), dtype=np.int64),
        waiting=pairs[0],
        awaited=pairs[1],
        in_turn=graph.in_turn,
    )


def longest_ps(graph: Graph, times: Int64) -> int:
    """Return the longest chain of a graph with nodes that take `times`."""
    flows = _flows(graph, graph.source, graph.destination, graph.size, graph.size)
    # The hosts of a flow play no part: its completion is known at both ends at once.
    ends = chain_ends(
        flows,
        graph.depth(),
        machines=1,
        at_source=times,
        at_destination=times,
    )
    return int(ends.max(initial=0))


def graph_flows(graph: Graph, hosts: Int64, payload_bytes: int, start_ps: int) -> Flows:
    """Return a graph's flows, rank r being host `hosts[r]`; raises TrafficError."""
    refuse_many(len(graph))
    if graph.ranks > len(hosts):
        raise TrafficError(f"it has {graph.ranks:,} ranks, but there are {len(hosts):,} hosts")

    sent = cut(graph.size, payload_bytes)
    flows = _flows(graph, hosts[graph.source], hosts[graph.destination], *sent)
    return replace(flows, start_ps=np.full(len(graph), start_ps, dtype=np.int64))


def shared_by_depth(tree: FatTree, flows: Flows) -> Flows:
    """Return the flows of a graph with their shares; raises TrafficError.

    As an estimate of who meets whom: the transfers of one depth, as many as leave the host, or as
    arrive at their destination, if that is more.
    """
    refuse_remote(tree, flows)
    depth = depths(flows.after_offset, flows.after)
    is_sent = flows.packets > 0
    share = np.ones(len(flows), dtype=np.int64)
    for end in (flows.source, flows.destination):
        _, of, counts = np.unique(
            depth[is_sent] * tree.hosts + end[is_sent], return_inverse=True, return_counts=True
        )
        share[is_sent] = np.maximum(share[is_sent], counts[of])

    return replace(flows, share=share)


def _flows(
    graph: Graph, source: Int64, destination: Int64, packets: Int64, last_bytes: Int64
) -> Flows:
    offset, after = graph.after()
    nothing = np.zeros(len(graph), dtype=np.int64)
    return Flows(
        source=source,
        destination=destination,
        packets=packets,
        last_bytes=last_bytes,
        start_ps=nothing,
        after_offset=offset,
        after=after,
        compute_ps=graph.compute_ps,
        share=nothing,
        in_turn=nothing + graph.in_turn,
    )


def refuse_many(count: int) -> None:
    """Raise TrafficError where a graph's nodes would take too much memory."""
    if count > MOST_NODES:
        raise TrafficError(
            f"this workload has {count:,} transfers and computations, more than {MOST_NODES:,}: "
            "fewer hosts, chunks or steps"
        )
