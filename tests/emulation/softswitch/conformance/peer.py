"""P4Runtime messages in a line: protobuf's text format, `$name` for ids of `conformance.p4`."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ofan_p4.compiler import Program, compile_file
from ofan_p4.softswitch.base.errors import Code
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.p4runtime import P4RuntimeService, StatusError

# isort: split
from google.protobuf import text_format
from google.protobuf.message import Message
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2 as p4

CPU = 510
DEVICE = 1
SOURCE = Path(__file__).parent / "conformance.p4"
Set = p4.SetForwardingPipelineConfigRequest


@functools.cache
def compiled() -> Program:
    """Compile the program, once for all tests."""
    return compile_file(SOURCE)


@functools.cache
def source() -> bytes:
    """Return the program as BMv2 JSON."""
    return json.dumps(compiled().json).encode()


@functools.cache
def ids() -> dict[str, int]:
    """Return the P4Info id of every object of the program, by alias."""
    info, numbers = compiled().p4info, {}
    for _, items in info.ListFields():
        for item in () if isinstance(items, Message) else items:
            if hasattr(item, "preamble"):
                numbers[item.preamble.alias] = item.preamble.id

    return numbers


def entity(text: str) -> p4.Entity:
    """Parse an entity."""
    return text_format.Parse(
        re.sub(r"\$(\w+)", lambda name: str(ids()[name[1]]), text), p4.Entity()
    )


def quoted(value: int | bytes) -> str:
    """A value as a string of the text format, shortest form."""
    data = (
        value
        if isinstance(value, bytes)
        else value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")
    )
    return '"' + "".join(f"\\{byte:03o}" for byte in data) + '"'


def entry(table: str, *parts: str) -> str:
    """A table entry."""
    return f"table_entry {{ table_id: ${table} {' '.join(parts)} }}"


def exact(value: int | bytes, field: int = 1) -> str:
    """An exact match."""
    return f"match {{ field_id: {field} exact {{ value: {quoted(value)} }} }}"


def lpm(value: int, length: int) -> str:
    """A match by prefix."""
    return f"match {{ field_id: 1 lpm {{ value: {quoted(value)} prefix_len: {length} }} }}"


def ternary(value: int, mask: int) -> str:
    """A ternary match."""
    return f"match {{ field_id: 1 ternary {{ value: {quoted(value)} mask: {quoted(mask)} }} }}"


def between(low: int, high: int) -> str:
    """A range match."""
    return f"match {{ field_id: 2 range {{ low: {quoted(low)} high: {quoted(high)} }} }}"


def action(name: str, *values: int | bytes) -> str:
    """An action with its parameters, as a table action."""
    return f"action {{ {plain(name, *values)} }}"


def plain(name: str, *values: int | bytes) -> str:
    """An action with its parameters."""
    params = " ".join(
        f"params {{ param_id: {i} value: {quoted(value)} }}" for i, value in enumerate(values, 1)
    )
    return f"action {{ action_id: ${name} {params} }}"


def member(number: int, act: str = "", profile: str = "choices") -> str:
    """A member of an action profile."""
    fields = f"action_profile_id: ${profile} member_id: {number}"
    return f"action_profile_member {{ {fields} {act or plain('forward', number)} }}"


def group(number: int, *members: str, more: str = "", profile: str = "choices") -> str:
    """A group of an action profile; a member is `ID WEIGHT [TEXT]`."""
    listed = []
    for item in members:
        identity, weight, *rest = item.split(" ", 2)
        listed.append(f"members {{ member_id: {identity} weight: {weight} {' '.join(rest)} }}")

    fields = f"action_profile_id: ${profile} group_id: {number}"

    return f"action_profile_group {{ {fields} {' '.join(listed)} {more} }}"


def one_shot(*choices: str, more: str = "") -> str:
    """A one-shot; a choice is `PORT WEIGHT [TEXT]`."""
    listed = []
    for item in choices:
        port, weight, *rest = item.split(" ", 2)
        fields = f"{plain('forward', int(port))} weight: {weight} {' '.join(rest)}"
        listed.append(f"action_profile_actions {{ {fields} }}")

    return f"action {{ action_profile_action_set {{ {' '.join(listed)} {more} }} }}"


def multicast(number: int, *replicas: str) -> str:
    """A multicast group; a replica is its text."""
    listed = " ".join(f"replicas {{ {replica} }}" for replica in replicas)
    group = f"multicast_group_entry {{ multicast_group_id: {number} {listed} }}"
    return f"packet_replication_engine_entry {{ {group} }}"


def session(number: int, *replicas: str, more: str = "") -> str:
    """A clone session."""
    listed = " ".join(f"replicas {{ {replica} }}" for replica in replicas)
    session = f"clone_session_entry {{ session_id: {number} {listed} {more} }}"
    return f"packet_replication_engine_entry {{ {session} }}"


def frame(kind: int, low: int = 0, mid: int = 0, high: int = 0) -> bytes:
    """A packet of the program."""
    return bytes([kind, low]) + mid.to_bytes(2, "big") + high.to_bytes(4, "big")


def code_of(call: Callable[[], Any]) -> str:
    """Return the name of the code with which a call ends."""
    try:
        call()
    except StatusError as error:
        return error.code.name

    return "OK"


class Peer:
    """A switch that runs the program, and its primary controller, in process.

    Ports 0 to 7 and the CPU's.
    """

    def __init__(
        self, edit: Callable[[p4info_pb2.P4Info], None] | None = None, has_pipeline: bool = True
    ) -> None:
        self.now_ps = 0
        self.switch = Switch(
            DEVICE,
            clock=lambda: self.now_ps,
            random=lambda low, _high: low,
            ports=range(8),
            cpu_port=CPU,
        )
        self.service = P4RuntimeService(self.switch, lambda: 10**18 + self.now_ps // 1000)
        self.received: list[p4.StreamMessageResponse] = []
        self.stream = self.service.open_stream(self.received.append)
        self.announce(self.stream, 1)
        self.info = p4info_pb2.P4Info()
        self.info.CopyFrom(compiled().p4info)
        if edit is not None:
            edit(self.info)
        if has_pipeline:
            self.set_pipeline(Set.VERIFY_AND_COMMIT)

    @staticmethod
    def announce(stream: Any, election: int | None, role: str = "", device: int = DEVICE) -> None:
        """Send an arbitration message; no election id where it is None."""
        message = p4.StreamMessageRequest()
        message.arbitration.device_id = device
        if role:
            message.arbitration.role.name = role
        if election is not None:
            message.arbitration.election_id.low = election
            message.arbitration.election_id.SetInParent()

        stream.receive(message)

    def set_pipeline(self, kind: int, has_config: bool = True, **more: Any) -> None:
        """Send a SetForwardingPipelineConfig."""
        request = Set(device_id=DEVICE, action=kind)
        request.election_id.low = 1
        if has_config:
            request.config.p4_device_config = source()
            request.config.p4info.CopyFrom(self.info)
            request.config.cookie.cookie = 42

        for name, value in more.items():
            setattr(request, name, value)

        self.service.set_pipeline(request)

    def write(self, *updates: tuple[str, str], **more: Any) -> None:
        """Send updates, each a type name and the text of an entity."""
        request = p4.WriteRequest(device_id=DEVICE)
        request.election_id.low = 1
        for kind, text in updates:
            request.updates.add(type=p4.Update.Type.Value(kind), entity=entity(text))
        for name, value in more.items():
            setattr(request, name, value)

        self.service.write(request)

    def code(self, kind: str, text: str) -> str:
        """Return the name of the code with which one update ends."""
        try:
            self.write((kind, text))
        except StatusError as error:
            [detail] = error.details
            return Code(detail.canonical_code).name

        return "OK"

    def read(self, *texts: str) -> list[p4.Entity]:
        """Return the entities that a read selects."""
        responses = self.service.read(p4.ReadRequest(device_id=DEVICE, entities=map(entity, texts)))
        return [read_entity for response in responses for read_entity in response.entities]

    def send(self, data: bytes, port: int = 0) -> list[tuple[int, bytes]]:
        """Return the (port, frame) pairs that a packet becomes."""
        waiting = self.switch.ingress(port, data)
        sent = [out for pending in waiting for out in self.switch.egress(pending)]
        return [(out.port, out.frame) for out in sent]
