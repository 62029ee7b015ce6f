"""Requests to a held network and its answers, as typed values.

A request is one line of JSON, and so is its reply; then the server closes the connection:

    {"command": "link", "name": "edge0_0-agg0_1", "up": false}
    {"answer": {"link": "edge0_0-agg0_1", "installed_ms": 41.7, "updates": 52, "switches": 8}}

or, for a refusal, {"error": "one line"}. `command` names the `Request`, the other keys are its
fields; `answer` has the type that the request is a `Request` of.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Generic, TypeVar, get_args

from pydantic import TypeAdapter, ValidationError

from emulation.outcomes.changes import Change

# The name of the control socket in the run folder.
SOCKET = "control"
CHUNK_BYTES = 1 << 16
# Long enough for `link`, which waits for the convergence of routes.
ANSWER_SECONDS = 60.0
# The beginning of a message about a run that did not come to its end.
ENDED = "ended: "
AnswerT = TypeVar("AnswerT")


class MessageError(Exception):
    """Bytes that are no message, or no message for here; one line."""


# Answers


@dataclass(frozen=True, slots=True)
class Installed:
    """The result of a change of a link.

    `installed_ms` is up to the last switch's acknowledgement, detection included; None where routes
    never change, or are not changed yet.
    """

    link: str
    installed_ms: float | None
    updates: int
    switches: int


@dataclass(frozen=True, slots=True)
class LinkState:
    """A link between switches, and how many packets it has lost.

    `rate` is the share of its rate that it carries while it is up.
    """

    link: str
    up: bool
    lost_to_failure: int
    rate: float = 1.0


@dataclass(frozen=True, slots=True)
class ConvergenceState:
    """Progress of the control plane with a change of links, in milliseconds of the run.

    None for a time that is unknown, or not reached yet. `rates` are the shares of their rates at
    which links have begun to run.
    """

    links_down: list[str]
    links_up: list[str]
    rates: dict[str, float]
    detection: str
    failed_ms: float | None
    detected_ms: float | None
    planned_ms: float | None
    installed_ms: float | None
    updates: int
    switches: int


@dataclass(frozen=True, slots=True)
class SwitchState:
    """One switch: its program, the number of its entries, the sums of its ports' counters.

    `lost_contact` is the reason why the controller does not reach it, if so; None for counters that
    the kind of switch does not report.
    """

    name: str
    address: str
    pipeline: str
    lost_contact: str | None
    entries: int
    received: int
    sent: int
    dropped: int | None
    lost_to_failure: int
    max_queue_bytes: int | None
    failed: list[str]


@dataclass(frozen=True, slots=True)
class Status:
    """A held network: `failed` links are down, `avoided` ones have no routes over them.

    `slow` links run at a share of their rate, and routes spare the `spared` ones.
    """

    name: str
    fabric: str
    policy: str
    seed: int
    switch: str
    process: int
    traffic: str
    failed: list[str]
    slow: dict[str, float]
    detection: str
    avoided: list[str]
    spared: list[str]
    convergences: list[ConvergenceState]
    switches: list[SwitchState]


@dataclass(frozen=True, slots=True)
class GroupView:
    """One group: its destinations, its schedule's uplinks in order, where data and ACKs start."""

    group: int
    destinations: list[str]
    schedule: int
    uplinks: list[str]
    data_start: int
    ack_start: int


@dataclass(frozen=True, slots=True)
class PointerView:
    """A group's pointers: the next slot, or `start` while no packet has passed.

    `acks` is None where one pointer, that of data, serves both classes.
    """

    group: int
    data: str
    acks: str | None


@dataclass(frozen=True, slots=True)
class ArrayView:
    """A register or counter: its size, and its cells that are not zero, by their numbers.

    A register's cell is its value, a counter's its packets and bytes.
    """

    array: str
    size: int
    cells: dict[int, list[int]]


@dataclass(frozen=True, slots=True)
class SwitchAddress:
    """The address of a switch's P4Runtime server, and its device id."""

    address: str
    device_id: int


@dataclass(frozen=True, slots=True)
class HeldState:
    """Everything that can be counted at one moment; times in ps of the run.

    `ports` has (carried, queued, longest, drops, lost) by switch and port (0 is no port), `flows`
    has (flow, acknowledged, start, done), `slow` (link, share of its rate).
    """

    scenario: dict[str, Any]
    process: int
    switch: str
    now_ps: int
    is_running: bool
    last: str
    converges: bool
    failed: list[int]
    slow: list[tuple[int, float]]
    ports: list[list[list[int]]]
    flows: list[list[int]]
    changes: tuple[Change, ...]


# Requests


class Request(Generic[AnswerT]):
    """A command; the fields of a dataclass are its arguments, AnswerT is the type of its answer."""

    __slots__ = ()
    command: ClassVar[str]

    @property
    def answer_seconds(self) -> float | None:
        """Return how long its answer may take; None where it comes at the end of a run."""
        return ANSWER_SECONDS


@dataclass(frozen=True, slots=True)
class SetLink(Request[Installed]):
    """Break or mend a link, and wait until the new schedules are in, or not."""

    command: ClassVar[str] = "link"
    name: str
    up: bool
    wait: bool = True


@dataclass(frozen=True, slots=True)
class SetRate(Request[Installed]):
    """Let a link carry a share of its rate, both ways, and wait as `SetLink` does; 1 is all."""

    command: ClassVar[str] = "rate"
    name: str
    rate: float
    wait: bool = True


@dataclass(frozen=True, slots=True)
class ListLinks(Request[list[LinkState]]):
    """List the links between switches."""

    command: ClassVar[str] = "links"


@dataclass(frozen=True, slots=True)
class GetStatus(Request[Status]):
    """Describe the network and every switch."""

    command: ClassVar[str] = "status"


@dataclass(frozen=True, slots=True)
class GetSchedule(Request[list[GroupView]]):
    """Read the groups and schedules that a switch holds back from it."""

    command: ClassVar[str] = "schedule"
    switch: str


@dataclass(frozen=True, slots=True)
class GetPointers(Request[list[PointerView]]):
    """Read a switch's pointers."""

    command: ClassVar[str] = "pointers"
    switch: str


@dataclass(frozen=True, slots=True)
class GetRegisters(Request[list[ArrayView]]):
    """Read all registers and counters of a switch."""

    command: ClassVar[str] = "registers"
    switch: str


@dataclass(frozen=True, slots=True)
class GetAddress(Request[SwitchAddress]):
    """Say where a switch listens."""

    command: ClassVar[str] = "address"
    switch: str


@dataclass(frozen=True, slots=True)
class StartTraffic(Request[str]):
    """Run the collective once more, with messages of another size if given.

    The answer comes at once, or with `wait` at its end.
    """

    command: ClassVar[str] = "traffic_start"
    message_bytes: int | None = None
    wait: bool = False

    @property
    def answer_seconds(self) -> float | None:
        """Return None with `wait`: the emulation itself gives a run up (`mininet.limits`)."""
        return None if self.wait else ANSWER_SECONDS


@dataclass(frozen=True, slots=True)
class StopTraffic(Request[str]):
    """End the running traffic; the answer has its progress."""

    command: ClassVar[str] = "traffic_stop"


@dataclass(frozen=True, slots=True)
class GetState(Request[HeldState]):
    """Ask for all counts of this moment, for a viewer (`emulation.live`)."""

    command: ClassVar[str] = "live"


# The wire


def request_line(request: Request[Any]) -> bytes:
    """Return the line that asks for something."""
    return _line({"command": request.command, **_plain(request)})


def answer_line(answer: object) -> bytes:
    """Return the line that answers."""
    return _line({"answer": answer})


def error_line(reason: str) -> bytes:
    """Return the line that refuses."""
    return _line({"error": reason})


def read_request(line: bytes, kinds: Mapping[str, type[Request[Any]]]) -> Request[Any]:
    """Return a line's request, of the kind that its command names; raises MessageError."""
    # Any bytes may come: text that is no JSON, JSON that is no object, a name of another type.
    try:
        arguments = json.loads(line)
        kind = kinds[arguments.pop("command")]
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise MessageError(
            f"a command is one line of JSON, one of {', '.join(sorted(kinds))}"
        ) from None

    try:
        request = kind(**arguments)
    except TypeError as error:
        # Python's words behind the name of the constructor: which argument is missing or unknown.
        raise MessageError(f"{kind.command}: {str(error).partition(') ')[2] or error}") from None

    _refuse_wrong_types(request)
    return request


def _refuse_wrong_types(request: Request[Any]) -> None:
    """Raise MessageError where an argument is not of the type that its request declares."""
    name = ""
    try:
        for field in fields(request):  # type: ignore[arg-type]
            name = field.name
            declared: Any = field.type
            # Strictly: text in place of a number is a mistake, and no number.
            TypeAdapter(declared).validate_python(getattr(request, name), strict=True)
    except ValidationError as error:
        complaint = error.errors()[0]["msg"]
        raise MessageError(f"{request.command}: {name}: {complaint}") from None


def read_answer(request: Request[AnswerT], line: bytes) -> AnswerT:
    """Return the answer of a line to a request; raises MessageError where it is a refusal."""
    reply = json.loads(line)
    if "error" in reply:
        raise MessageError(reply["error"])

    # The type that a request is a `Request` of, from its declaration.
    (base,) = type(request).__orig_bases__  # type: ignore[attr-defined]
    (kind,) = get_args(base)
    # JSON has lists where there are tuples, and objects where there are dataclasses.
    answer: AnswerT = TypeAdapter(kind).validate_python(reply["answer"])
    return answer


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, default=_plain).encode() + b"\n"


def _plain(message: Any) -> dict[str, Any]:
    """Return the fields of a dataclass; JSON asks again for dataclasses within it."""
    return {field.name: getattr(message, field.name) for field in fields(message)}
