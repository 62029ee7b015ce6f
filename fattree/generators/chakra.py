"""Chakra traces as graphs, as far as a network here can run them.

A rank's computations take their recorded time, one after the other, those of the CPU apart from
those of the GPU. Sends match receives by ranks and tag, in the order of the files. The CPU's work
for a collective or message of a GPU's node is a computation. The n-th collective of a process group
on one rank is the n-th on all its ranks, which are those with traces that name the group
(`pg_name`; all without a group). `comm_size` of a collective is as in ASTRA-sim: the buffer of an
all-reduce, a broadcast or a reduce-scatter, each rank's part before an all-gather, each rank's
bytes to all others in an all-to-all.
"""

from collections import defaultdict
from collections.abc import Iterator
from enum import IntEnum

from fattree.demand.workloads.graph import Graph
from fattree.errors import TrafficError
from fattree.files.memory import Room
from fattree.generators.building import Builder, Message, matched, one_after_another
from fattree.generators.chakra_dimensions import DIMENSIONS, is_of_some
from fattree.generators.chakra_file import NodeType, Trace, TraceNode
from fattree.units import PS_PER_US


class Collective(IntEnum):
    """The collectives, as the schema numbers them."""

    ALL_REDUCE = 0
    REDUCE = 1
    ALL_GATHER = 2
    GATHER = 3
    SCATTER = 4
    BROADCAST = 5
    ALL_TO_ALL = 6
    REDUCE_SCATTER = 7
    REDUCE_SCATTER_BLOCK = 8
    BARRIER = 9


MATRICES = {
    Collective.ALL_REDUCE: "all_reduce",
    Collective.ALL_GATHER: "all_gather",
    Collective.BROADCAST: "broadcast",
    Collective.ALL_TO_ALL: "all_to_all",
    Collective.REDUCE_SCATTER: "reduce_scatter",
    # As much as nothing, from all to all.
    Collective.BARRIER: "all_reduce",
}
COMPUTATIONS = (NodeType.COMP, NodeType.MEM_LOAD, NodeType.MEM_STORE)
# A collective, by its group, its tag and its place among those; and a rank with its node.
Group = tuple[str, int, int]
Part = tuple[int, TraceNode]


def chakra_graph(trace: Trace, algorithm: str = "ring", memory: Room | None = None) -> Graph:
    """Return traces as a graph, collectives by an algorithm; raises TrafficError."""
    builder = Builder(memory=memory or Room())
    # Where a node's own dependencies meet, and where those that depend on it wait for it.
    began: list[dict[int, int]] = []
    ended: list[dict[int, int]] = []
    messages: defaultdict[NodeType, list[Message]] = defaultdict(list)
    processors: defaultdict[tuple[int, bool], list[int]] = defaultdict(list)

    for rank, nodes in enumerate(trace.ranks):
        _refuse_repeated(nodes)
        began.append(
            {traced.number: _begin(builder, rank, traced, len(trace.ranks)) for traced in nodes}
        )
        ended.append(dict(began[rank]))
        for node in nodes:
            _sort(rank, node, began[rank][node.number], messages, processors)

    for receive, sent in matched(messages[NodeType.COMM_SEND], messages[NodeType.COMM_RECV]):
        builder.wait(receive, (sent,))

    for parts in _collectives(trace):
        for (rank, node), end in zip(parts, _put_in(builder, parts, began, algorithm), strict=True):
            ended[rank][node.number] = end

    for rank, nodes in enumerate(trace.ranks):
        for node in nodes:
            builder.wait(began[rank][node.number], _awaited(node, ended[rank]))

    one_after_another(builder, processors.values())
    return builder.graph()


def _refuse_repeated(nodes: list[TraceNode]) -> None:
    seen: set[int] = set()
    for node in nodes:
        if node.number in seen:
            raise TrafficError(f"{node.where}: there is another node of this number")

        seen.add(node.number)


def _begin(builder: Builder, rank: int, node: TraceNode, ranks: int) -> int:
    match node.kind:
        case NodeType.COMM_SEND:
            peer = node.whole("comm_dst")
            if peer >= ranks:
                raise TrafficError(f"{node.where}: there is no rank {peer}")

            _refuse_other(node, "comm_src", rank)
            return builder.send(rank, peer, node.whole("comm_size"))
        case kind if kind in COMPUTATIONS:
            sized = [name for name in ("num_ops", "tensor_size") if node.attributes.get(name)]
            if not node.duration_us and sized:
                raise TrafficError(f"{node.where}: has {sized[0]} but no duration: not supported")

            return builder.compute(rank, node.duration_us * PS_PER_US)
        case NodeType.COMM_RECV:
            _refuse_other(node, "comm_dst", rank)
            return builder.compute(rank, 0)
        case _:
            return builder.compute(rank, 0)


def _refuse_other(node: TraceNode, name: str, rank: int) -> None:
    if (value := node.attributes.get(name, rank)) != rank:
        raise TrafficError(f"{node.where}: {name} is {value!r:.40}, but it is of rank {rank}")


def _sort(
    rank: int,
    node: TraceNode,
    begin: int,
    messages: dict[NodeType, list[Message]],
    processors: dict[tuple[int, bool], list[int]],
) -> None:
    """Put a node among those that have another end, or a processor to share."""
    tag = node.attributes.get("comm_tag", 0)
    if node.kind is NodeType.COMM_SEND:
        key = (rank, node.whole("comm_dst"), tag)
        messages[node.kind].append(Message(key, begin, node.where))
    elif node.kind is NodeType.COMM_RECV:
        key = (node.whole("comm_src"), rank, tag)
        messages[node.kind].append(Message(key, begin, node.where))
    elif node.duration_us and node.kind in COMPUTATIONS:
        processors[rank, bool(node.attributes.get("is_cpu_op", False))].append(begin)


def _awaited(node: TraceNode, ended: dict[int, int]) -> Iterator[int]:
    for number in node.after:
        if number not in ended:
            raise TrafficError(f"{node.where}: depends on node {number}, which is not in this file")

        yield ended[number]


def _collectives(trace: Trace) -> list[list[Part]]:
    """Return the collectives, each with the ranks that take part and their nodes."""
    by_group: defaultdict[Group, list[Part]] = defaultdict(list)
    members: defaultdict[str, set[int]] = defaultdict(set)
    for rank, nodes in enumerate(trace.ranks):
        counts: defaultdict[tuple[str, int], int] = defaultdict(int)
        for node in nodes:
            if node.kind is NodeType.COMM_COLL:
                _refuse_dimensions(node)
                name, tag = node.group, node.attributes.get("comm_tag", 0)
                by_group[name, tag, counts[name, tag]].append((rank, node))
                members[name].update([rank] if name else range(len(trace.ranks)))
                counts[name, tag] += 1

    for (name, *_), parts in by_group.items():
        kinds = {_kind(part) for _, part in parts}
        if len(parts) < len(members[name]) or len(kinds) > 1:
            raise TrafficError(
                f"{parts[0][1].where}: not all ranks of its group have a collective of this type "
                "and size in this place"
            )

    return list(by_group.values())


def _refuse_dimensions(node: TraceNode) -> None:
    if is_of_some(node):
        raise TrafficError(
            f"{node.where}: is a collective of some dimensions ({DIMENSIONS}): --dimensions says "
            "how many ranks each has, as in 4,2"
        )


def _kind(node: TraceNode) -> tuple[str, int]:
    """Return the fields that are equal on all ranks: not an all-to-all's sizes."""
    matrix, size = _matrix(node), node.whole("comm_size")
    return matrix, 0 if matrix == "all_to_all" else size


def _put_in(
    builder: Builder, parts: list[Part], began: list[dict[int, int]], algorithm: str
) -> list[int]:
    """Add a collective; return the node at which each rank has completed it."""
    matrix = _matrix(parts[0][1])
    ranks = [rank for rank, _ in parts]
    sizes = [max(part.whole("comm_size"), 1) for _, part in parts]
    after = [[began[rank][part.number]] for rank, part in parts]
    if matrix == "all_to_all":
        rounded = [-(-size // len(ranks)) for size in sizes]
        return builder.collective(matrix, "direct", ranks, rounded, after)

    size = sizes[0] * len(ranks) if matrix == "all_gather" else sizes[0]
    return builder.collective(matrix, algorithm, ranks, size, after)


def _matrix(node: TraceNode) -> str:
    """Return a collective's name here; raises TrafficError for a collective without a name."""
    number = node.whole("comm_type")
    kind = Collective(number) if number in set(Collective) else None
    if kind not in MATRICES:
        name = str(number) if kind is None else kind.name
        raise TrafficError(f"{node.where}: collectives of type {name} are not supported")

    return MATRICES[kind]
