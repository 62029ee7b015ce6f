"""A graph put together step by step: computations, messages, and collectives among some ranks."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fattree.demand.workloads.collectives import collective_graph
from fattree.demand.workloads.graph import Graph, refuse_many
from fattree.errors import TrafficError
from fattree.files.memory import Room

Int64 = NDArray[np.int64]
# The largest number in an array of int64.
MOST = 2**63 - 1
# Nodes that must be complete before another.
Nodes = Sequence[int]


@dataclass(slots=True)
class Builder:
    """Nodes as columns of plain lists, and who waits for whom; nodes are numbers from 0."""

    source: list[int] = field(default_factory=list)
    destination: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    compute_ps: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    awaited: list[int] = field(default_factory=list)
    memory: Room = field(default_factory=Room)

    def __len__(self) -> int:
        return len(self.source)

    def compute(self, rank: int, compute_ps: int, after: Nodes = ()) -> int:
        """Add a computation and return its node; of no time, it is a place to meet."""
        return self._add(rank, rank, 0, compute_ps, after)

    def send(self, source: int, destination: int, size: int, after: Nodes = ()) -> int:
        """Add a transfer and return its node; without bytes it is a message all the same.

        A message of a rank to itself takes no time.
        """
        if source == destination:
            return self.compute(source, 0, after)

        return self._add(source, destination, max(size, 1), 0, after)

    def wait(self, node: int, after: Iterable[int]) -> None:
        """Let a node wait for others."""
        before = len(self.awaited)
        self.awaited.extend(after)
        self.memory.take(0, len(self.awaited) - before)
        self.waiting.extend([node] * (len(self.awaited) - before))

    def collective(
        self,
        matrix: str,
        algorithm: str,
        ranks: Sequence[int],
        size: int | Sequence[int],
        after: Sequence[Nodes],
        gpus_per_server: int = 0,
    ) -> list[int]:
        """Add a collective, each rank beginning after its nodes; return each rank's last node.

        Ranks of one server are neighbours, `gpus_per_server` of them (0: they are no servers).
        Where nothing is passed on, each rank may have a size of its own. Raises TrafficError.
        """
        entered = [
            nodes[0] if len(nodes) == 1 else self.compute(rank, 0, nodes)
            for rank, nodes in zip(ranks, after, strict=True)
        ]
        if len(ranks) == 1:
            return entered

        sizes = [size] if isinstance(size, int) else size
        _refuse_large(ranks[0], max(sizes))
        servers = np.arange(len(ranks)).reshape(-1, gpus_per_server or len(ranks))
        graph = collective_graph(matrix, algorithm, servers, max(sizes))
        if len(sizes) > 1:
            graph = replace(graph, size=np.array(sizes, dtype=np.int64)[graph.source])

        first = len(self)
        refuse_many(first + len(graph))
        self.memory.take(len(graph), len(graph.waiting))
        named = np.array(ranks, dtype=np.int64)
        self.source.extend(named[graph.source].tolist())
        self.destination.extend(named[graph.destination].tolist())
        self.size.extend(np.maximum(graph.size, 1).tolist())
        self.compute_ps.extend([0] * len(graph))

        # A rank that has begun needs no more leave; its first message waits for it.
        follows = np.zeros(len(graph), dtype=np.bool_)
        is_own = graph.source[graph.awaited] == graph.source[graph.waiting]
        follows[graph.waiting[is_own]] = True
        roots = np.flatnonzero(~follows)
        entries = np.array(entered, dtype=np.int64)[graph.source[roots]]
        self.waiting.extend(chain((graph.waiting + first).tolist(), (roots + first).tolist()))
        self.awaited.extend(chain((graph.awaited + first).tolist(), entries.tolist()))

        return [
            self.compute(rank, 0, nodes)
            for rank, nodes in zip(ranks, _last(graph, first, len(ranks)), strict=True)
        ]

    def graph(self) -> Graph:
        """Return the graph of all additions."""
        refuse_many(len(self))
        columns = (self.source, self.destination, self.size, self.compute_ps)
        return Graph(
            *(np.array(column, dtype=np.int64) for column in columns),
            *(np.array(column, dtype=np.int64) for column in (self.waiting, self.awaited)),
        )

    def _add(self, source: int, destination: int, size: int, compute_ps: int, after: Nodes) -> int:
        _refuse_large(source, max(size, compute_ps))
        self.memory.take(1)
        self.source.append(source)
        self.destination.append(destination)
        self.size.append(size)
        self.compute_ps.append(compute_ps)
        node = len(self.source) - 1
        self.wait(node, after)
        return node


def _refuse_large(rank: int, value: int) -> None:
    if value > MOST:
        raise TrafficError(f"rank {rank}: an operation of {value:.1e} bytes or ps is too large")


def _last(graph: Graph, first: int, ranks: int) -> list[list[int]]:
    """Return each rank's nodes that no other node of it waits for, counted from `first`."""
    # A transfer is known at both its ends.
    rank = np.concatenate([graph.source, graph.destination])
    node = np.tile(np.arange(len(graph)), 2)
    taken = graph.awaited * ranks + graph.source[graph.waiting]
    chosen = ~np.isin(node * ranks + rank, taken)
    last: list[list[int]] = [[] for _ in range(ranks)]
    for of_rank, number in zip(rank[chosen].tolist(), (node[chosen] + first).tolist(), strict=True):
        last[of_rank].append(number)

    return last


class Message(NamedTuple):
    """One end of a message: its ranks and tag, its node, and its name in errors."""

    key: tuple[int, ...]
    node: int
    where: str


def matched(sends: Iterable[Message], receives: Iterable[Message]) -> Iterator[tuple[int, int]]:
    """Yield the nodes of each receive and of its send: the first send left that is like it.

    Raises TrafficError for an end without its other end.
    """
    waiting: defaultdict[tuple[int, ...], deque[Message]] = defaultdict(deque)
    for send in sends:
        waiting[send.key].append(send)

    for receive in receives:
        if not waiting[receive.key]:
            raise TrafficError(f"{receive.where}: nothing is sent that it could receive")

        yield receive.node, waiting[receive.key].popleft().node

    for unmatched in waiting.values():
        if unmatched:
            raise TrafficError(f"{unmatched[0].where}: nobody receives it")


def one_after_another(builder: Builder, groups: Iterable[Sequence[int]]) -> None:
    """Let the computations of each group run one after the other, as on one processor.

    In the order of their depth, then as given: a waiting node comes after the node that it waits
    for.
    """
    depth = builder.graph().depth()
    for group in groups:
        order = sorted(group, key=lambda node: int(depth[node]))
        for before, after in pairwise(order):
            builder.wait(after, (before,))
