"""Chakra's `involved_dim`: collectives of some dimensions of the ranks, as groups of ranks.

As in ASTRA-sim a rank's number counts through the first dimension first. A collective of some
dimensions is of the ranks that differ in these alone. Where it names a process group (`pg_name`),
the group's ranks take part.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from fattree.errors import TrafficError
from fattree.generators.chakra_file import NodeType, Trace, TraceNode

DIMENSIONS = "involved_dim"


def by_dimensions(trace: Trace, sizes: Sequence[int]) -> Trace:
    """Return a trace in which collectives of some dimensions name groups; raises TrafficError."""
    if prod(sizes) != len(trace.ranks):
        raise TrafficError(
            f"--dimensions {','.join(map(str, sizes))}: makes {prod(sizes)} ranks, but the trace "
            f"has {len(trace.ranks)}"
        )

    return replace(
        trace,
        ranks=[
            [_grouped(node, rank, sizes) for node in nodes]
            for rank, nodes in enumerate(trace.ranks)
        ],
    )


def is_of_some(node: TraceNode) -> bool:
    """Return whether a node is a collective of some dimensions without a group."""
    involved = node.attributes.get(DIMENSIONS)
    return (
        node.kind is NodeType.COMM_COLL
        and not node.group
        and involved is not None
        and involved != (True,) * len(involved)
    )


def _grouped(node: TraceNode, rank: int, sizes: Sequence[int]) -> TraceNode:
    if not is_of_some(node):
        return node

    # Traces often have entries of more dimensions than there are.
    involved = node.attributes[DIMENSIONS][: len(sizes)]
    if len(involved) < len(sizes) or not any(involved):
        raise TrafficError(
            f"{node.where}: {DIMENSIONS} has {len(involved)} entries of {len(sizes)} dimensions, "
            f"{sum(involved)} of them true"
        )

    # The group's first rank is at the beginning of each dimension that is involved.
    first, stride = rank, 1
    for size, is_involved in zip(sizes, involved, strict=True):
        first -= rank // stride % size * stride * is_involved
        stride *= size

    chosen = ",".join(
        str(dimension) for dimension, is_involved in enumerate(involved) if is_involved
    )
    name = "" if all(involved) else f"dimensions {chosen} of rank {first}"
    attributes = {key: value for key, value in node.attributes.items() if key != DIMENSIONS}
    return replace(node, attributes=attributes | ({"pg_name": name} if name else {}))
