"""A Chakra trace of n ranks as one of m: copies side by side, which meet where all ranks have met.

Of a run on many GPUs there is often the trace of one, or of one replica. Rank r + n c is copy c of
rank r. A collective of all n ranks becomes a collective of all m, with as many bytes for each
rank as before; a collective of fewer ranks, and each message, stays inside its copy.
"""

from collections import defaultdict
from dataclasses import replace
from typing import Any

from fattree.demand.workloads.graph import refuse_many
from fattree.errors import TrafficError
from fattree.files.memory import Room
from fattree.generators.chakra_file import NodeType, Trace, TraceNode

PEERS = ("comm_dst", "comm_src")


def stretched(trace: Trace, ranks: int, memory: Room | None = None) -> Trace:
    """Return a trace on so many ranks; raises TrafficError where that makes no sense."""
    count = len(trace.ranks)
    copies, rest = divmod(ranks, count)
    if rest or not copies:
        raise TrafficError(f"--ranks {ranks}: must be a multiple of the {count} ranks of the trace")

    if copies == 1:
        return trace

    whole = _groups_of_all(trace)
    if not whole:
        raise TrafficError(
            f"--ranks {ranks}: no collective of this trace is of all its {count} ranks: "
            "copies of them would never meet"
        )

    nodes = sum(map(len, trace.ranks))
    refuse_many(nodes * copies)
    (memory or Room()).take(nodes * (copies - 1), trace.dependencies * (copies - 1))
    stretched_ranks = [
        [_moved(node, count * copy, whole) for node in row]
        for copy in range(copies)
        for row in trace.ranks
    ]
    return replace(trace, ranks=stretched_ranks)


def _groups_of_all(trace: Trace) -> set[str]:
    """Return the process groups of collectives in which all ranks take part."""
    members: defaultdict[str, set[int]] = defaultdict(set)
    for rank, nodes in enumerate(trace.ranks):
        for node in nodes:
            if node.kind is NodeType.COMM_COLL:
                members[node.group].add(rank)

    return {
        name for name, in_group in members.items() if not name or len(in_group) == len(trace.ranks)
    }


def _moved(node: TraceNode, first: int, whole: set[str]) -> TraceNode:
    """Return a node of the copy with ranks from `first` on."""
    changes: dict[str, Any] = {
        name: node.whole(name) + first for name in PEERS if name in node.attributes
    }
    if node.kind is NodeType.COMM_COLL and node.group not in whole:
        changes["pg_name"] = f"{node.group} from rank {first}"

    return replace(node, attributes=node.attributes | changes) if changes else node
