"""htsim's connection matrices: files of connections and of the triggers that chain them.

    file        = { header | connection | trigger | comment }      one a line
    header      = ("Nodes" | "Connections" | "Triggers" | "Failures") COUNT
    connection  = SOURCE "->" DESTINATION { ("id" ID) | ("start" TIME) | ("trigger" ID)
                                          | ("size" BYTES) | ("send_done_trigger" ID)
                                          | ("recv_done_trigger" ID) }
    trigger     = "trigger" "id" ID ("oneshot" | "multishot" | "barrier" "count" COUNT)
    comment     = "#" anything | nothing

Nodes and Connections are required, and of a connection exactly one of start and trigger.

A trigger becomes `Flows.after`, so only those that a host can see by itself are possible: whoever
fires it must begin or end where the connections that it starts begin. `send_done_trigger` fires
when the sender has all acknowledged, or, where it starts connections of the receiver's, when that
has all. `recv_done_trigger` is the latter by name, so what it starts must begin at the receiver.
What else htsim knows (failures, prio) is refused by name.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, TypeVar

import numpy as np

from fattree.errors import MatrixError, TrafficError
from fattree.flows import Flows, generations, offsets
from fattree.text_file import read_text
from fattree.topology import FatTree
from fattree.units import PS_PER_US

Unit = Literal["ps", "us"]
Kind = Literal["oneshot", "multishot", "barrier"]
Entry = TypeVar("Entry", "Connection", "Trigger")

# Simulators of the htsim family disagree: some read `start` as ps, some as us.
PS_PER_UNIT = {"ps": 1, "us": PS_PER_US}

# 11 days; what is later is a slip of the unit, and must not overflow int64 with a run added to it.
LONGEST_PS = 10**18
HEADERS = ("Nodes", "Connections", "Triggers", "Failures")
FIELDS = ("id", "start", "trigger", "size", "send_done_trigger", "recv_done_trigger")
REFUSED = {
    "prio": "prio is not supported: there are no priorities among flows",
    "failure": "failure lines are not supported: "
    "name failed links in the experiment, under failures.events",
}


@dataclass(frozen=True, slots=True)
class Connection:
    """One line SOURCE->DESTINATION.

    `start` is in the file's unit, None where a trigger starts it.
    """

    line: int
    source: int
    destination: int
    size: int
    start: float | None
    trigger: int | None
    fires: int | None
    received_fires: int | None
    identity: int | None


@dataclass(frozen=True, slots=True)
class Trigger:
    """What starts connections: all at its first firing, one at each, or all after `count`."""

    line: int
    identity: int
    kind: Kind
    count: int


@dataclass(slots=True)
class ConnectionMatrix:
    """A parsed file: connections in file order."""

    source: str
    counts: dict[str, int] = field(default_factory=dict)
    connections: list[Connection] = field(default_factory=list)
    triggers: list[Trigger] = field(default_factory=list)

    def error(self, line: int, why: str) -> MatrixError:
        """Return an error about a line of this file."""
        return MatrixError(f"{self.source}:{line}: {why}")


def read_connection_matrix(path: str, tree: FatTree, payload_bytes: int, unit: Unit) -> Flows:
    """Read a file as flows between the first hosts of a fat-tree; raises MatrixError."""
    return matrix_flows(
        parse_connection_matrix(read_text(path, MatrixError), path), tree, payload_bytes, unit
    )


def describe(matrix: ConnectionMatrix, unit: Unit) -> str:
    """Return one line that says how a file was understood, the unit of `start` above all."""
    latest = (
        max((connection.start or 0 for connection in matrix.connections), default=0)
        * PS_PER_UNIT[unit]
    )

    counts = (
        f"{matrix.counts['Nodes']} hosts, {len(matrix.connections)} connections, "
        f"{len(matrix.triggers)} triggers"
    )
    times = f"start times read as {unit}, the latest is {latest / PS_PER_US:g} us"

    return f"{matrix.source}: {counts}; {times}"


def parse_connection_matrix(text: str, source: str) -> ConnectionMatrix:
    """Parse the text of a file; `source` names it in errors.

    Raises MatrixError with the line and what was expected.
    """
    matrix = ConnectionMatrix(source)
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.split()
        if words and not words[0].startswith("#"):
            _parse_line(matrix, number, words)

    _check_counts(matrix)
    return matrix


def _parse_line(matrix: ConnectionMatrix, line: int, words: list[str]) -> None:
    first = words[0]
    if first in HEADERS:
        _parse_header(matrix, line, words)
    elif "->" in first:
        matrix.connections.append(_parse_connection(matrix, line, words))
    elif first == "trigger":
        matrix.triggers.append(_parse_trigger(matrix, line, words))
    elif first in REFUSED:
        raise matrix.error(line, REFUSED[first])
    else:
        expected = f"one of {', '.join(HEADERS)}, SOURCE->DESTINATION or trigger"
        raise matrix.error(line, f"expected {expected}, found {_shown(first)}")


def _parse_header(matrix: ConnectionMatrix, line: int, words: list[str]) -> None:
    name = words[0]
    if name in matrix.counts:
        raise matrix.error(line, f"{name} is given twice")
    if len(words) != 2:
        raise matrix.error(line, f"expected {name} and a number")

    matrix.counts[name] = _number(matrix, line, name, words[1])
    if name == "Failures" and matrix.counts[name]:
        raise matrix.error(line, REFUSED["failure"])


def _parse_connection(matrix: ConnectionMatrix, line: int, words: list[str]) -> Connection:
    source, _, destination = words[0].partition("->")
    fields = _fields(matrix, line, words[1:])
    numbers = {
        name: _number(matrix, line, name, text, least=1)
        for name, text in fields.items()
        if name != "start"
    }

    if ("start" in fields) == ("trigger" in fields):
        raise matrix.error(
            line,
            "expected exactly one of start and trigger, "
            f"found {'both' if 'start' in fields else 'none'}",
        )

    if "size" not in fields:
        raise matrix.error(line, "expected size and a number of bytes, found none")

    if "trigger" in fields and "id" not in fields:
        raise matrix.error(
            line, "expected id and a number, which a connection that waits for a trigger needs"
        )

    return Connection(
        line=line,
        source=_number(matrix, line, "the source", source),
        destination=_number(matrix, line, "the destination", destination),
        size=numbers["size"],
        start=_time(matrix, line, fields["start"]) if "start" in fields else None,
        trigger=numbers.get("trigger"),
        fires=numbers.get("send_done_trigger"),
        received_fires=numbers.get("recv_done_trigger"),
        identity=numbers.get("id"),
    )


def _fields(matrix: ConnectionMatrix, line: int, words: list[str]) -> dict[str, str]:
    # An odd last name gets the empty value, which is refused below by its name.
    fields: dict[str, str] = {}
    for name, value in zip(words[::2], [*words[1::2], ""], strict=False):
        if name in REFUSED:
            raise matrix.error(line, REFUSED[name])
        if name not in FIELDS:
            raise matrix.error(line, f"expected one of {', '.join(FIELDS)}, found {_shown(name)}")

        if name in fields or not value:
            raise matrix.error(
                line,
                f"{name} is given twice" if name in fields else f"expected a value after {name}",
            )

        fields[name] = value

    return fields


def _parse_trigger(matrix: ConnectionMatrix, line: int, words: list[str]) -> Trigger:
    match words[1:]:
        case ["id", identity, ("oneshot" | "multishot") as kind]:
            count = "1"
        case ["id", identity, "barrier" as kind, "count", count]:
            pass
        case _:
            raise matrix.error(
                line,
                "expected trigger id N oneshot, trigger id N multishot "
                "or trigger id N barrier count M",
            )

    return Trigger(
        line,
        _number(matrix, line, "id", identity, least=1),
        kind,
        _number(matrix, line, "count", count, least=1),
    )


def _number(matrix: ConnectionMatrix, line: int, what: str, text: str, least: int = 0) -> int:
    # ASCII first: `isdigit` alone would take superscripts, which `int` refuses.
    if text.isascii() and text.isdigit() and len(text) <= 15 and int(text) >= least:
        return int(text)

    if what == "size" and text.strip("0") == "":
        raise matrix.error(
            line, "size 0 means endless, which is not supported: expected the bytes of the message"
        )

    raise matrix.error(
        line, f"{what}: expected a whole number from {least} to 10^15, found {_shown(text)}"
    )


def _time(matrix: ConnectionMatrix, line: int, text: str) -> float:
    try:
        time = float(text)
    except ValueError:
        # As "nan" in the file itself: no comparison holds for it.
        time = math.nan

    if not 0 <= time <= LONGEST_PS:
        raise matrix.error(line, f"start: expected a time from 0 to 10^18, found {_shown(text)}")

    return time


def _shown(word: str) -> str:
    return repr(word if len(word) <= 40 else f"{word[:37]}...")


def _check_counts(matrix: ConnectionMatrix) -> None:
    for name in HEADERS[:2]:
        if name not in matrix.counts:
            raise MatrixError(f"{matrix.source}: expected a line {name} N, found none")

    for name, found in (
        ("Connections", len(matrix.connections)),
        ("Triggers", len(matrix.triggers)),
    ):
        if matrix.counts.get(name, 0) != found:
            raise MatrixError(
                f"{matrix.source}: {name} is {matrix.counts.get(name, 0)}, but the file has {found}"
            )

    _refuse_repeated(
        matrix, (connection for connection in matrix.connections if connection.identity)
    )
    _refuse_repeated(matrix, matrix.triggers)


def _refuse_repeated(matrix: ConnectionMatrix, entries: Iterable[Entry]) -> None:
    lines: dict[int | None, int] = {}
    for entry in entries:
        if entry.identity in lines:
            raise matrix.error(
                entry.line, f"id {entry.identity} is also on line {lines[entry.identity]}"
            )

        lines[entry.identity] = entry.line


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

    flows = Flows(
        source=_column(connection.source for connection in matrix.connections),
        destination=_column(connection.destination for connection in matrix.connections),
        packets=_column(-(-connection.size // payload_bytes) for connection in matrix.connections),
        start_ps=_column(starts),
        after_offset=offsets(_column(map(len, waits))),
        after=_column(flow for awaited in waits for flow in awaited),
        compute_ps=np.zeros(len(starts), dtype=np.int64),
        share=np.zeros(len(starts), dtype=np.int64),
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
    known = {trigger.identity for trigger in matrix.triggers}

    for index, connection in enumerate(matrix.connections):
        for named, users in (
            (connection.trigger, started),
            (connection.fires, firing),
            (connection.received_fires, firing),
        ):
            if named is not None and named not in known:
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
    """Yield what a trigger starts, and after which connections."""
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
    for other in (matrix.connections[flow] for flow in awaited):
        if other.received_fires == trigger.identity and connection.source != other.destination:
            raise matrix.error(
                connection.line,
                f"trigger {trigger.identity} fires at host {other.destination}, "
                f"which receives the connection of line {other.line}; "
                f"host {connection.source} cannot know of that",
            )

        if connection.source not in (other.source, other.destination):
            raise matrix.error(
                connection.line,
                f"trigger {trigger.identity} is global: "
                f"host {connection.source} cannot know when the connection "
                f"{other.source}->{other.destination} of line {other.line} is done; "
                "only hosts that take part in it can",
            )
