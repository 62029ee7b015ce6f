"""The flows of an htsim connection matrix: which hosts, when, and after which others."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from fattree.demand.flows import Flows, cut, generations, offsets
from fattree.errors import MatrixError, TrafficError
from fattree.files.connection_matrix import (
    LONGEST_PS,
    PS_PER_UNIT,
    ConnectionMatrix,
    Trigger,
    Unit,
    parse_connection_matrix,
)
from fattree.files.text_file import read_text
from fattree.shape.topology import FatTree


def read_connection_matrix(path: str, tree: FatTree, payload_bytes: int, unit: Unit) -> Flows:
    """Read a file as flows between the first hosts of a fat-tree; raises MatrixError."""
    return matrix_flows(
        parse_connection_matrix(read_text(path, MatrixError), path), tree, payload_bytes, unit
    )


def matrix_flows(matrix: ConnectionMatrix, tree: FatTree, payload_bytes: int, unit: Unit) -> Flows:
    """Return the flows of a parsed file, in file order.

    Raises MatrixError where they do not fit the fat-tree.
    """
    _check_hosts(matrix, tree)
    waits = _waits(matrix)
    starts = [
        round((connection.start or 0) * PS_PER_UNIT[unit]) for connection in matrix.connections
    ]

    for connection, start in zip(matrix.connections, starts, strict=True):
        if start > LONGEST_PS:
            raise matrix.error(
                connection.line,
                f"start {connection.start:g} {unit} is later than 10^18 ps: is the unit right?",
            )

    packets, last_bytes = cut(
        _column(connection.size for connection in matrix.connections), payload_bytes
    )
    flows = Flows(
        source=_column(connection.source for connection in matrix.connections),
        destination=_column(connection.destination for connection in matrix.connections),
        packets=packets,
        last_bytes=last_bytes,
        start_ps=_column(starts),
        after_offset=offsets(_column(map(len, waits))),
        after=_column(flow for awaited in waits for flow in awaited),
        compute_ps=np.zeros(len(starts), dtype=np.int64),
        share=np.zeros(len(starts), dtype=np.int64),
        in_turn=np.zeros(len(starts), dtype=np.int64),
    )

    try:
        generations(tree, flows)
    except TrafficError as error:
        raise MatrixError(f"{matrix.source}: {error}") from None

    return flows


def _column(values: Iterable[int]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.fromiter(values, dtype=np.int64)


def _check_hosts(matrix: ConnectionMatrix, tree: FatTree) -> None:
    nodes = matrix.counts["Nodes"]
    if nodes > tree.hosts:
        raise MatrixError(
            f"{matrix.source}: Nodes is {nodes}, "
            f"but a fat-tree of {tree.label} has {tree.hosts} hosts"
        )

    if not matrix.connections:
        raise MatrixError(f"{matrix.source}: expected at least one connection")

    for connection in matrix.connections:
        for host in (connection.source, connection.destination):
            if host >= nodes:
                raise matrix.error(
                    connection.line, f"expected hosts from 0 to {nodes - 1}, found {host}"
                )

        if connection.source == connection.destination:
            raise matrix.error(connection.line, f"host {connection.source} cannot send to itself")


def _waits(matrix: ConnectionMatrix) -> list[tuple[int, ...]]:
    """Return for each connection those that must be complete before it starts."""
    started: dict[int, list[int]] = {}
    firing: dict[int, list[int]] = {}
    identities = {trigger.identity for trigger in matrix.triggers}

    for index, connection in enumerate(matrix.connections):
        for named, users in (
            (connection.trigger, started),
            (connection.fires, firing),
            (connection.received_fires, firing),
        ):
            if named is not None and named not in identities:
                raise matrix.error(
                    connection.line,
                    f"there is no trigger {named}: expected a line trigger id {named} ...",
                )

            if named is not None:
                users.setdefault(named, []).append(index)

    waits: list[tuple[int, ...]] = [()] * len(matrix.connections)
    for trigger in matrix.triggers:
        for index, awaited in _started_by(
            matrix, trigger, started.get(trigger.identity, []), firing.get(trigger.identity, [])
        ):
            _refuse_global(matrix, trigger, index, awaited)
            waits[index] = awaited

    return waits


def _started_by(
    matrix: ConnectionMatrix, trigger: Trigger, started: list[int], firing: list[int]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the connections that a trigger starts, and those that each waits for."""
    if trigger.kind == "multishot":
        yield from _one_by_one(matrix, trigger, started, firing)
        return

    if started and len(firing) != trigger.count:
        fires = (
            f"{trigger.kind} trigger {trigger.identity} needs {trigger.count} connection(s) "
            f"that fire it, found {len(firing)}"
        )
        raise matrix.error(
            trigger.line,
            f"{fires}: with fewer nothing starts, and waiting for some of them is not supported",
        )

    yield from ((index, tuple(firing)) for index in started)


def _one_by_one(
    matrix: ConnectionMatrix, trigger: Trigger, started: list[int], firing: list[int]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield a multishot trigger's chain.

    One connection fires it from outside, and each that it starts fires it again.
    """
    chain = [index for index in firing if index not in started] + started
    if started and (len(chain) != len(started) + 1 or not set(chain[:-1]) <= set(firing)):
        expected = (
            "one connection that fires it first "
            "and every one that it starts (but the last) firing it again"
        )
        raise matrix.error(
            trigger.line,
            f"multishot trigger {trigger.identity}: only a chain is supported, expected {expected}",
        )

    yield from ((later, (earlier,)) for earlier, later in pairwise(chain))


def _refuse_global(
    matrix: ConnectionMatrix, trigger: Trigger, index: int, awaited: tuple[int, ...]
) -> None:
    # Hosts know of a flow's end only at its ends (design, decision 9); htsim's triggers know all.
    connection = matrix.connections[index]
    for before in (matrix.connections[flow] for flow in awaited):
        if before.received_fires == trigger.identity and connection.source != before.destination:
            raise matrix.error(
                connection.line,
                f"trigger {trigger.identity} fires at host {before.destination}, "
                f"which receives the connection of line {before.line}; "
                f"host {connection.source} cannot know of that",
            )

        if connection.source not in (before.source, before.destination):
            raise matrix.error(
                connection.line,
                f"trigger {trigger.identity} is global: "
                f"host {connection.source} cannot know when the connection "
                f"{before.source}->{before.destination} of line {before.line} is done; "
                "only hosts that take part in it can",
            )
