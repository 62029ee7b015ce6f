"""GOAL schedules as graphs: what of them a network here can do.

A send begins when what it requires is complete, whether or not it is expected (there is no
rendezvous), and matches the first receive of its ranks and tag that is left. Receives from anybody,
or of any tag, are refused: what they match depends on times.
"""

from collections import defaultdict
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import chain

from fattree.demand.workloads.graph import Graph
from fattree.errors import TrafficError
from fattree.files.memory import Room
from fattree.generators.building import Builder, Message, matched, one_after_another
from fattree.generators.goal_file import ANY, Kind, Operation, Schedule
from fattree.units import PS_PER_NS


def goal_graph(schedule: Schedule, room: Room | None = None) -> Graph:
    """Return a schedule as a graph; raises TrafficError for what no network here can do.

    Calculations of one processor run one after the other. What irequires another waits for what
    that waits for.
    """
    builder = Builder(room=room or Room())
    nodes = [[_node(builder, rank, one) for one in row] for rank, row in enumerate(schedule.ranks)]
    messages: defaultdict[Kind, list[Message]] = defaultdict(list)
    processors: defaultdict[tuple[int, int], list[int]] = defaultdict(list)

    for rank, row in enumerate(schedule.ranks):
        starts = _starts(builder, rank, row, nodes[rank])
        for number, operation in enumerate(row):
            node = nodes[rank][number]
            builder.wait(node, starts.get(number) or _needs(operation, nodes[rank], starts))
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
    # LogGOPS has one NIC for a rank, which sends one message after the other.
    return replace(builder.graph(), in_turn=True)


def _node(builder: Builder, rank: int, operation: Operation) -> int:
    """Add an operation: a receive is a place at which to meet what arrives."""
    if operation.kind is Kind.SEND:
        return builder.send(rank, operation.peer, operation.size)

    is_calculated = operation.kind is Kind.CALCULATE
    return builder.compute(rank, operation.size * PS_PER_NS if is_calculated else 0)


def _starts(
    builder: Builder, rank: int, row: list[Operation], nodes: list[int]
) -> dict[int, list[int]]:
    """Return what must be complete before those operations start that others start after.

    It is one node or none: where there are several, they meet in one more, so that a long chain of
    such operations does not name all that was before it again and again.
    """
    after = {number: one.starts_after for number, one in enumerate(row) if one.starts_after}
    starts: dict[int, list[int]] = {}
    try:
        order = list(TopologicalSorter(after).static_order())
    except CycleError as error:
        where = row[error.args[1][0]].where
        raise TrafficError(f"{where}: starts after itself, by irequires in a circle") from None

    awaited = set(chain.from_iterable(after.values()))
    for number in order:
        if number in awaited:
            needs = _needs(row[number], nodes, starts)
            starts[number] = needs if len(needs) < 2 else [builder.compute(rank, 0, needs)]

    return starts


def _needs(operation: Operation, nodes: list[int], starts: dict[int, list[int]]) -> list[int]:
    """Return what an operation waits for: what it requires, and those before it to start."""
    begun = chain.from_iterable(starts[number] for number in operation.starts_after)
    return sorted({*(nodes[number] for number in operation.requires), *begun})


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
