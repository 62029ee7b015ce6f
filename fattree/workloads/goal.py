"""GOAL schedules as graphs: what of them a network here can do.

A send begins when what it requires is complete, whether or not it is expected (there is no
rendezvous), and matches the first receive of its ranks and tag that is left. Receives from anybody,
or of any tag, are refused: what they match depends on times.
"""

from collections import defaultdict

from fattree.errors import TrafficError
from fattree.units import PS_PER_NS
from fattree.workloads.building import Builder, Message, matched, one_after_another
from fattree.workloads.goal_file import ANY, Kind, Operation, Schedule
from fattree.workloads.graph import Graph


def goal_graph(schedule: Schedule) -> Graph:
    """Return a schedule as a graph; raises TrafficError for what no network here can do.

    Calculations of one processor run one after the other. What irequires another waits for what
    that waits for.
    """
    builder = Builder()
    nodes = [[_node(builder, rank, one) for one in row] for rank, row in enumerate(schedule.ranks)]
    messages: defaultdict[Kind, list[Message]] = defaultdict(list)
    processors: defaultdict[tuple[int, int], list[int]] = defaultdict(list)

    for rank, row in enumerate(schedule.ranks):
        for number, operation in enumerate(row):
            node = nodes[rank][number]
            builder.wait(node, sorted(nodes[rank][one] for one in _start_needs(row, number)))
            if operation.kind is Kind.CALCULATE:
                processors[rank, operation.cpu].append(node)
            else:
                _refuse_unsupported(operation, len(schedule.ranks))
                ends = (rank, operation.peer)
                key = ends if operation.kind is Kind.SEND else ends[::-1]
                messages[operation.kind].append(
                    Message((*key, operation.tag), node, operation.where)
                )

    for receive, sent in matched(messages[Kind.SEND], messages[Kind.RECEIVE]):
        builder.wait(receive, (sent,))

    one_after_another(builder, processors.values())
    return builder.graph()


def _node(builder: Builder, rank: int, operation: Operation) -> int:
    """Add an operation: a receive is a place at which to meet what arrives."""
    if operation.kind is Kind.SEND:
        return builder.send(rank, operation.peer, operation.size)

    is_calculated = operation.kind is Kind.CALCULATE
    return builder.compute(rank, operation.size * PS_PER_NS if is_calculated else 0)


def _start_needs(row: list[Operation], number: int) -> set[int]:
    """Return what must be complete before an operation starts, through what must have started."""
    found: set[int] = set()
    seen = {number}
    pending = [number]
    while pending:
        operation = row[pending.pop()]
        found.update(operation.requires)
        fresh = set(operation.starts_after) - seen
        seen |= fresh
        pending += fresh

    return found


def _refuse_unsupported(operation: Operation, ranks: int) -> None:
    if ANY in (operation.peer, operation.tag):
        raise TrafficError(
            f"{operation.where}: a peer or tag of -1 is not supported: "
            "what it matches would depend on times"
        )

    if operation.peer >= ranks:
        raise TrafficError(
            f"{operation.where}: there is no rank {operation.peer}, ranks are 0 to {ranks - 1}"
        )
