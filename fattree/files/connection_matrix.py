"""htsim's connection matrices: files of connections and of the triggers that chain them.

    file        = { header | connection | trigger | comment }      one a line
    header      = ("Nodes" | "Connections" | "Triggers" | "Failures") COUNT
    connection  = SOURCE "->" DESTINATION { ("id" ID) | ("start" TIME) | ("trigger" ID)
                                          | ("size" BYTES) | ("send_done_trigger" ID)
                                          | ("recv_done_trigger" ID) }
    trigger     = "trigger" "id" ID ("oneshot" | "multishot" | "barrier" "count" COUNT)
    comment     = "#" anything | nothing

Nodes and Connections are required, and of a connection exactly one of start and trigger.

A trigger becomes `Flows.after`, so only those that a host can see by itself are possible: the
connection that fires it must begin or end where the connections that it starts begin.
`send_done_trigger` fires when the sender has all acknowledged, or, where it starts connections of
the receiver's, when the receiver has all. `recv_done_trigger` is the latter by name, so the
connections that it starts must begin at the receiver. Other words of htsim's (failures, prio) are
refused by name.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from fattree.errors import MatrixError
from fattree.files.fields import Fields, Use, names
from fattree.units import PS_PER_US

Unit = Literal["ps", "us"]
Kind = Literal["oneshot", "multishot", "barrier"]
Entry = TypeVar("Entry", "Connection", "Trigger")

# Simulators of the htsim family disagree: some read `start` as ps, some as us.
PS_PER_UNIT = {"ps": 1, "us": PS_PER_US}

# 11 days; a later time is a slip of the unit, and must not overflow int64 with a run added to it.
LONGEST_PS = 10**18
HEADER_FIELDS = (
    Fields(("Nodes",), Use.USED, "hosts"),
    Fields(("Connections",), Use.USED, "must be as many as the file has"),
    Fields(("Triggers",), Use.USED, "must be as many as the file has; 0 if missing"),
    Fields(("Failures",), Use.USED, "refused above 0"),
)
CONNECTION_FIELDS = (
    Fields(("id",), Use.USED, ""),
    Fields(("start",), Use.USED, "in `collective.start_unit`"),
    Fields(("trigger", "size", "send_done_trigger", "recv_done_trigger"), Use.USED, ""),
)
REFUSED_FIELDS = (
    Fields(("prio",), Use.REFUSED, "prio is not supported: there are no priorities among flows"),
    Fields(
        ("failure",),
        Use.REFUSED,
        "failure lines are not supported: name failed links in the experiment, under "
        "failures.events",
    ),
)
TABLE = (
    *HEADER_FIELDS,
    *CONNECTION_FIELDS,
    Fields(("oneshot", "multishot", "barrier", "count"), Use.USED, "of a trigger"),
    *REFUSED_FIELDS,
    Fields(("any other",), Use.REFUSED, ""),
)
HEADERS = names(HEADER_FIELDS, Use.USED)
FIELDS = names(CONNECTION_FIELDS, Use.USED)
REFUSED = {name: row.why for row in REFUSED_FIELDS for name in row.names}


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
    """A start of connections: all at its first firing, one at each, or all after `count`."""

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

    def shown(self, word: str) -> str:
        """Return a word of the file as errors quote it.

        Before any header nothing is quoted: the file may be another user's, with any content.
        """
        if not self.counts:
            return "another word"

        return repr(word if len(word) <= 40 else f"{word[:37]}...")


def describe(matrix: ConnectionMatrix, unit: Unit) -> str:
    """Return one line about the reading of a file, the unit of `start` above all."""
    latest = (
        max((connection.start or 0 for connection in matrix.connections), default=0)
        * PS_PER_UNIT[unit]
    )

    counts = (
        f"{matrix.counts['Nodes']} hosts, {len(matrix.connections)} connections, "
        f"{len(matrix.triggers)} triggers"
    )
    times = f"start times read as {unit}, the latest is {latest / PS_PER_US:g} µs"

    return f"{matrix.source}: {counts}; {times}"


def parse_connection_matrix(text: str, source: str) -> ConnectionMatrix:
    """Parse the text of a file; `source` names it in errors.

    Raises MatrixError with the line and the expected words.
    """
    matrix = ConnectionMatrix(source)
    for number, line in enumerate(text.split("\n"), start=1):
        tokens = line.split()
        if tokens and not tokens[0].startswith("#"):
            _parse_line(matrix, number, tokens)

    _check_counts(matrix)
    return matrix


def _parse_line(matrix: ConnectionMatrix, line: int, parts: list[str]) -> None:
    first = parts[0]
    if first in HEADERS:
        _parse_header(matrix, line, parts)
    elif "->" in first:
        matrix.connections.append(_parse_connection(matrix, line, parts))
    elif first == "trigger":
        matrix.triggers.append(_parse_trigger(matrix, line, parts))
    elif first in REFUSED:
        raise matrix.error(line, REFUSED[first])
    else:
        expected = f"one of {', '.join(HEADERS)}, SOURCE->DESTINATION or trigger"
        raise matrix.error(line, f"expected {expected}, found {matrix.shown(first)}")


def _parse_header(matrix: ConnectionMatrix, line: int, parts: list[str]) -> None:
    name = parts[0]
    if name in matrix.counts:
        raise matrix.error(line, f"{name} is given twice")
    if len(parts) != 2:
        raise matrix.error(line, f"expected {name} and a number")

    matrix.counts[name] = _number(matrix, line, name, parts[1])
    if name == "Failures" and matrix.counts[name]:
        raise matrix.error(line, REFUSED["failure"])


def _parse_connection(matrix: ConnectionMatrix, line: int, parts: list[str]) -> Connection:
    source, _, destination = parts[0].partition("->")
    fields = _fields(matrix, line, parts[1:])
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


def _fields(matrix: ConnectionMatrix, line: int, parts: list[str]) -> dict[str, str]:
    # An odd last name gets the empty value, which is refused below by its name.
    fields: dict[str, str] = {}
    for name, value in zip(parts[::2], [*parts[1::2], ""], strict=False):
        if name in REFUSED:
            raise matrix.error(line, REFUSED[name])
        if name not in FIELDS:
            raise matrix.error(
                line, f"expected one of {', '.join(FIELDS)}, found {matrix.shown(name)}"
            )

        if name in fields or not value:
            raise matrix.error(
                line,
                f"{name} is given twice" if name in fields else f"expected a value after {name}",
            )

        fields[name] = value

    return fields


def _parse_trigger(matrix: ConnectionMatrix, line: int, parts: list[str]) -> Trigger:
    match parts[1:]:
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


def _number(matrix: ConnectionMatrix, line: int, subject: str, text: str, least: int = 0) -> int:
    # ASCII first: `isdigit` alone would take superscripts, which `int` refuses.
    if text.isascii() and text.isdigit() and len(text) <= 15 and int(text) >= least:
        return int(text)

    if subject == "size" and text.strip("0") == "":
        raise matrix.error(
            line, "size 0 means endless, which is not supported: expected the bytes of the message"
        )

    raise matrix.error(
        line,
        f"{subject}: expected a whole number from {least} to 10^15, found {matrix.shown(text)}",
    )


def _time(matrix: ConnectionMatrix, line: int, text: str) -> float:
    try:
        time = float(text)
    except ValueError:
        # As "nan" in the file itself: no comparison holds for it.
        time = math.nan

    if not 0 <= time <= LONGEST_PS:
        raise matrix.error(
            line, f"start: expected a time from 0 to 10^18, found {matrix.shown(text)}"
        )

    return time


def _check_counts(matrix: ConnectionMatrix) -> None:
    for name in HEADERS[:2]:
        if name not in matrix.counts:
            raise MatrixError(f"{matrix.source}: expected a line {name} N, found none")

    for name, count in (
        ("Connections", len(matrix.connections)),
        ("Triggers", len(matrix.triggers)),
    ):
        if matrix.counts.get(name, 0) != count:
            raise MatrixError(
                f"{matrix.source}: {name} is {matrix.counts.get(name, 0)}, but the file has {count}"
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
