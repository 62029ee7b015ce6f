"""The walk of packets through a program, step by step, for `ofan-p4 trace` and `--log-console`.

A `Walk` stands around the two functions of a pipeline that was generated with tracing. It numbers
the packets, turns the generated code's reports into `Step`s, and hands them on. A copy keeps the
number of its packet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ofan_p4.softswitch.base.requests import (
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
from ofan_p4.softswitch.codegen.program import Program
from ofan_p4.softswitch.codegen.tracing import Point
from ofan_p4.softswitch.control.trace_words import described

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
    """One event of a packet: its kind, its `file:line`, in words and as data."""

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
    """Reporter of every step of every packet to `report`; attach it to one switch."""

    def __init__(self, report: Callable[[Step], None]) -> None:
        self._report = report
        self._packets = 0
        self._current = 0
        self._is_muted = False
        self._program: Program | None = None
        self._drop_port = -1
        self._is_up: Callable[[int], bool] = lambda _port: True

    def around(
        self,
        program: Program,
        functions: tuple[Function, Function],
        drop_port: int,
        is_up: Callable[[int], bool],
    ) -> tuple[Function, Function]:
        """Return the functions of a pipeline that report the steps before and after them too."""
        ingress, egress = functions
        self._program = program
        self._drop_port = drop_port
        self._is_up = is_up

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
        """Take a report of generated code."""
        if not self._is_muted:
            assert self._program is not None
            text, data = described(self._program, point, values)
            self._report(
                Step(self._current, kind=point.kind, where=point.where, text=text, data=data)
            )

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
            # A clone is parsed once more to be in its first state; that walk is already reported.
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


def _hex(frame: bytes) -> str:
    return frame[:SHOWN_BYTES].hex() + ("..." if len(frame) > SHOWN_BYTES else "")


def _origin(instance: int, rid: int) -> str:
    return f" ({ORIGINS[instance]}, instance {rid})" if instance in ORIGINS else ""
