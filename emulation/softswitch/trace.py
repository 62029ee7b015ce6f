"""The walk of packets through a program, step by step, for `ofan p4 trace` and `--log-console`.

A `Walk` stands around the two functions of a pipeline that was generated with tracing. It numbers
the packets, turns what the generated code reports into `Step`s, and hands them on. A copy keeps the
number of its packet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from emulation.softswitch.codegen.program import KeyField, Program, TableSpec
from emulation.softswitch.codegen.tracing import Point
from emulation.softswitch.requests import (
    EGRESS_CLONE,
    INGRESS_CLONE,
    RECIRCULATED,
    REPLICATION,
    RESUBMITTED,
    CloneRequest,
    EgressRequests,
    IngressRequests,
    Resume,
)
from emulation.softswitch.tables import (
    NO_ACTION,
    USE_GROUP,
    USE_MEMBER,
    needs_priority,
    prefix_mask,
)

ORIGINS = {
    INGRESS_CLONE: "an ingress clone",
    EGRESS_CLONE: "an egress clone",
    RECIRCULATED: "recirculated",
    REPLICATION: "a replica",
    RESUBMITTED: "resubmitted",
}
# Enough for the headers; the data of a step has the whole frame.
SHOWN_BYTES = 128
Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened to a packet: what, at which `file:line`, in words and as data."""

    packet: int
    kind: str
    where: str
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the step as an object for JSON."""
        return {
            "packet": self.packet,
            "kind": self.kind,
            "where": self.where,
            "text": self.text,
            **self.data,
        }

    def line(self) -> str:
        """Return the step as one line that stands alone, as in a log."""
        return f"packet {self.packet}: {self.text}" + (f"  ({self.where})" if self.where else "")


class Walk:
    """Tells every step of every packet to `report`; attach it to one switch."""

    def __init__(self, report: Callable[[Step], None]) -> None:
        self._report = report
        self._packets = 0
        self._current = 0
        self._is_muted = False
        self._program: Program | None = None
        self._drop_port = -1
        self._is_up: Callable[[int], bool] = lambda _port: True
        self._errors: dict[int, str] = {}

    def around(
        self,
        program: Program,
        functions: tuple[Function, Function],
        drop_port: int,
        is_up: Callable[[int], bool],
    ) -> tuple[Function, Function]:
        """Return the functions of a pipeline with the steps before and after them told."""
        ingress, egress = functions
        self._program = program
        self._drop_port = drop_port
        self._is_up = is_up
        self._errors = {number: name for name, number in program.errors.items()}

        def traced_ingress(
            frame: bytes, port: int, length: int, now: int, resume: Resume | None
        ) -> Any:
            self._arrived(frame, port, resume)
            *outcome, state = self._ingress(
                ingress, frame, port, length=length, now=now, resume=resume
            )
            return (*outcome, (self._current, state))

        # The number of the packet travels with its state through the queues.
        def traced_egress(
            state: tuple[int, Any],
            port: int,
            priority: int,
            length: int,
            instance: int,
            rid: int,
            *times_and_depths: int,
        ) -> Any:
            self._current, inner = state
            self._tell(
                "egress",
                f"egress of port {port}{_origin(instance, rid)}",
                {"port": port, "instance_type": instance},
            )

            frame, requests = egress(
                inner, port, priority, length, instance, rid, *times_and_depths
            )
            return frame, self._left(
                port, frame, None if requests is None else EgressRequests(*requests)
            )

        return traced_ingress, traced_egress

    def trace(self, point: Point, values: tuple[Any, ...]) -> None:
        """Take what generated code reports."""
        if not self._is_muted:
            text, data = _WORDS[point.kind](self, point, values)
            self._report(
                Step(self._current, kind=point.kind, where=point.where, text=text, data=data)
            )

    def error_name(self, number: int) -> str:
        """Return the name of a parser error."""
        return self._errors.get(number, str(number))

    def action_call(self, number: int, data: Sequence[int]) -> str:
        """Return what an entry runs: `action(name=value, ...)`, a member or a group."""
        if number == USE_GROUP and data[0] < 0:
            return "a one-shot's group"
        if number in (USE_MEMBER, USE_GROUP):
            return f"{'member' if number == USE_MEMBER else 'group'} {data[0]}"
        if number == NO_ACTION:
            return "no action"

        assert self._program is not None
        action = self._program.actions[number]
        named = zip(action.parameter_names, action.parameter_bits, data, strict=True)
        arguments = [f"{name}={shown(value, bits)}" for name, bits, value in named]

        return f"{action.name}({', '.join(arguments)})"

    def _tell(self, kind: str, text: str, data: Mapping[str, Any]) -> None:
        if not self._is_muted:
            self._report(Step(self._current, kind, where="", text=text, data=data))

    def _arrived(self, frame: bytes, port: int, resume: Resume | None) -> None:
        if resume is None:
            self._packets += 1
            self._current = self._packets
            self._tell(
                "received",
                f"received {len(frame)} bytes on port {port}: {_hex(frame)}",
                {"port": port, "frame": frame.hex()},
            )
        elif resume.instance != INGRESS_CLONE:
            self._tell(
                "again", ORIGINS.get(resume.instance, "again"), {"instance_type": resume.instance}
            )

    def _ingress(
        self,
        ingress: Function,
        frame: bytes,
        port: int,
        length: int,
        now: int,
        resume: Resume | None,
    ) -> Any:
        if resume is not None and resume.instance == INGRESS_CLONE:
            # A clone is parsed once more to be in its first state; that walk is already told.
            self._is_muted = True
            try:
                return ingress(frame, port, length, now, resume)
            finally:
                self._is_muted = False

        result = ingress(frame, port, length, now, resume)
        spec, group, priority, _, requests, _ = result
        if requests is not None:
            self._requested(IngressRequests(*requests))
            if IngressRequests(*requests).resubmit is not None:
                return result

        self._decided(spec, group, priority)
        return result

    def _requested(self, requests: IngressRequests | EgressRequests) -> None:
        if requests.clone is not None:
            session = CloneRequest(*requests.clone).session
            self._tell("clone", f"a clone to session {session}", {"session": session})

    def _decided(self, spec: int, group: int, priority: int) -> None:

        if group:
            self._tell("multicast", f"to multicast group {group}", {"group": group})
        elif spec == self._drop_port:
            self._tell("dropped", "dropped by ingress", {})
        else:
            # The packet may have been meant for a port that has failed: that is worth a word.
            doubt = "" if self._is_up(spec) else ", which is down or does not exist"
            self._tell(
                "enqueued",
                f"to port {spec}, priority {priority}{doubt}",
                {"port": spec, "priority": priority},
            )

    def _left(
        self, port: int, frame: bytes | None, requests: EgressRequests | None
    ) -> EgressRequests | None:
        if requests is not None and requests.clone is not None:
            self._requested(requests)
            # The clone belongs to this packet: its state carries the number, too.
            requests = requests._replace(clone_state=(self._current, requests.clone_state))

        if frame is None:
            self._tell("dropped", "dropped by egress", {})
        elif requests is None or requests.recirculate is None:
            self._tell(
                "sent",
                f"sent {len(frame)} bytes from port {port}: {_hex(frame)}",
                {"port": port, "frame": frame.hex()},
            )

        return requests


def shown(value: Any, bits: int) -> str:
    """Return a value as people read it: small ones in decimal, others in full-width hexadecimal."""
    if isinstance(value, bytes):
        return f"0x{value.hex()}" if value else "empty"
    if bits <= 1 or not isinstance(value, int) or isinstance(value, bool):
        return str(int(value)) if isinstance(value, (int, bool)) else str(value)
    if 0 <= value < 10 or value < 0:
        return str(value)

    return f"0x{value:0{(bits + 3) // 4}x}"


def match_words(spec: TableSpec, match: Sequence[tuple[int, int]], priority: int) -> str:
    """Return the key of an entry as its table's control plane would write it."""
    fields = [f"{key.name}={_field(key, *pair)}" for key, pair in zip(spec.key, match, strict=True)]
    return ", ".join(fields) + (f", priority {priority}" if needs_priority(spec) else "")


def _field(key: KeyField, first: int, second: int) -> str:
    match key.kind:
        case "lpm":
            return f"{shown(first & prefix_mask(second, key.bits), key.bits)}/{second}"
        case "ternary":
            return _masked(first, second, key.bits)
        case "range":
            return f"{shown(first, key.bits)}..{shown(second, key.bits)}"
        case "optional":
            return shown(first, key.bits) if second else "*"

    return shown(first, key.bits)


def _masked(value: int, mask: int, bits: int) -> str:
    if mask in (0, (1 << bits) - 1):
        return shown(value, bits) if mask else "*"

    return f"{shown(value, bits)} &&& {shown(mask, bits)}"


def _hex(frame: bytes) -> str:
    return frame[:SHOWN_BYTES].hex() + ("..." if len(frame) > SHOWN_BYTES else "")


def _origin(instance: int, rid: int) -> str:
    return f" ({ORIGINS[instance]}, instance {rid})" if instance in ORIGINS else ""


def _named(point: Point, values: Sequence[Any], start: int = 0) -> tuple[str, dict[str, Any]]:
    pairs = [(label, value) for label, value in zip(point.labels, values, strict=False)][start:]
    text = ", ".join(f"{label.name}={shown(value, label.bits)}" for label, value in pairs)
    return text, {
        label.name: value.hex() if isinstance(value, bytes) else value for label, value in pairs
    }


Words = tuple[str, dict[str, Any]]


def _state(_walk: Walk, point: Point, _values: Sequence[Any]) -> Words:
    return f"parser state {point.name}", {"state": point.name}


def _extract(_walk: Walk, point: Point, values: Sequence[Any]) -> Words:
    text, fields = _named(point, values, 1)
    return f"extracted {point.name} at byte {values[0]}: {text}", {
        "header": point.name,
        "offset": values[0],
        "fields": fields,
    }


def _select(_walk: Walk, point: Point, values: Sequence[Any]) -> Words:
    key = ", ".join(
        shown(value, label.bits) for label, value in zip(point.labels, values, strict=True)
    )
    return (f"select ({key}): {point.name}" if key else f"transition {point.name}"), {
        "key": list(values),
        "next": point.name,
    }


def _parser_error(walk: Walk, _point: Point, values: Sequence[Any]) -> Words:
    name = walk.error_name(values[0])
    return f"parser error {name}", {"error": name}


def _condition(_walk: Walk, point: Point, values: Sequence[Any]) -> Words:
    return f"if ({point.name}): {'true' if values[0] else 'false'}", {
        "condition": point.name,
        "result": bool(values[0]),
    }


def _assign(_walk: Walk, point: Point, values: Sequence[Any]) -> Words:
    text, data = _named(point, values)
    return f"{point.name} = {text.removeprefix('value=')}", {"field": point.name, **data}


def _header(_walk: Walk, point: Point, values: Sequence[Any]) -> Words:
    return f"{point.name} is {'valid' if values[0] else 'not valid'}", {
        "header": point.name,
        "valid": bool(values[0]),
    }


def _stack(_walk: Walk, point: Point, values: Sequence[Any]) -> Words:
    return f"stack {point.name} has moved, next element {values[0]}", {
        "stack": point.name,
        "next": values[0],
    }


def _cell(words: str) -> Callable[[Walk, Point, Sequence[Any]], Words]:
    def say(_walk: Walk, point: Point, values: Sequence[Any]) -> Words:
        value = shown(values[1], point.labels[1].bits or 64)
        return f"{words} {point.name}[{values[0]}] = {value}", {
            "array": point.name,
            "index": values[0],
            "value": values[1],
        }

    return say


def _table(walk: Walk, point: Point, values: Sequence[Any]) -> Words:
    spec, (number, data, record), hit = point.detail, values[-2], bool(values[-1])
    key, fields = _named(point, values[:-2])
    entry = match_words(spec, record.match, record.priority) if hit else "default entry"
    call = walk.action_call(number, data)
    looked = f"table {point.name}" + (f", key {key}" if key else "")
    said = {"table": point.name, "key": fields, "hit": hit, "entry": entry, "action": call}

    return f"{looked}: {'hit' if hit else 'miss'}, {entry} -> {call}", said


def _action(_walk: Walk, point: Point, values: Sequence[Any]) -> Words:
    text, data = _named(point, values)
    return f"action {point.name}({text})", {"action": point.name, "parameters": data}


def _checksum_wrong(_walk: Walk, point: Point, values: Sequence[Any]) -> Words:
    found, expected = (shown(value, point.labels[0].bits) for value in values)
    return f"checksum {point.name} is wrong: {found}, not {expected}", {
        "field": point.name,
        "value": values[0],
        "expected": values[1],
    }


def _checksum_updated(_walk: Walk, point: Point, values: Sequence[Any]) -> Words:
    return f"checksum {point.name} = {shown(values[0], point.labels[0].bits)}", {
        "field": point.name,
        "value": values[0],
    }


def _emit(_walk: Walk, point: Point, values: Sequence[Any]) -> Words:
    headers = [label.name for label, valid in zip(point.labels, values[:-1], strict=False) if valid]
    rest = max(0, values[-1])
    return f"deparser emits {', '.join([*headers, f'{rest} more bytes'])}", {
        "headers": headers,
        "payload_bytes": rest,
    }


def _log_msg(_walk: Walk, point: Point, values: Sequence[Any]) -> Words:
    text = point.name
    for value in values:
        text = text.replace("{}", str(value), 1)

    return f"log: {text}", {"message": text}


def _plain(_walk: Walk, point: Point, values: Sequence[Any]) -> Words:
    return point.name + (f" {values[0]}" if values else ""), {}


_WORDS: dict[str, Callable[[Walk, Point, Sequence[Any]], Words]] = {
    "state": _state,
    "extract": _extract,
    "select": _select,
    "parser_error": _parser_error,
    "condition": _condition,
    "assign": _assign,
    "header": _header,
    "stack": _stack,
    "register_read": _cell("register read"),
    "register_write": _cell("register write"),
    "counter": _cell("counter"),
    "meter": _cell("meter"),
    "table": _table,
    "action": _action,
    "checksum_wrong": _checksum_wrong,
    "checksum_updated": _checksum_updated,
    "emit": _emit,
    "log_msg": _log_msg,
    **dict.fromkeys(
        (
            "assert",
            "clone",
            "drop",
            "exit",
            "generate_digest",
            "mark_to_drop",
            "recirculate",
            "resubmit",
            "truncate",
        ),
        _plain,
    ),
}
