"""Arbitration, packet I/O and digests on the stream channel."""

from __future__ import annotations

from typing import Any

import pytest
from p4.v1 import p4runtime_pb2 as p4

from ofan_p4.softswitch.base.errors import Code
from ofan_p4.softswitch.p4runtime import P4RuntimeService, StatusError

CPU = 510
DIGEST = 8 << 24


class Peer:
    """A controller that records its answers: (status code, highest election id)."""

    def __init__(self, service: P4RuntimeService) -> None:
        self.messages: list[p4.StreamMessageResponse] = []
        self.stream = service.open_stream(self.messages.append)

    def announce(
        self, election: int | None, device: int = 1, role: str = ""
    ) -> list[tuple[int, int]]:
        request = p4.StreamMessageRequest()
        request.arbitration.device_id = device
        if election is not None:
            request.arbitration.election_id.high, request.arbitration.election_id.low = divmod(
                election, 1 << 64
            )

        if role:
            request.arbitration.role.name = role
        self.stream.receive(request)

        return self.told()

    def told(self) -> list[tuple[int, int]]:
        seen = [(m.arbitration.status.code, m.arbitration.election_id) for m in self.messages]
        self.messages.clear()
        return [(code, election.high << 64 | election.low) for code, election in seen]


@pytest.fixture
def service(program: Any, bench: Any) -> P4RuntimeService:
    program.state("start")
    return P4RuntimeService(bench(program, cpu_port=CPU).switch)


def may_write(service: P4RuntimeService, election: int | None, role: str = "") -> bool:
    request = p4.SetForwardingPipelineConfigRequest(device_id=1, role=role, action=1)
    if election is not None:
        request.election_id.high, request.election_id.low = divmod(election, 1 << 64)
    try:
        service.set_pipeline(request)
    except StatusError as error:
        return error.code == Code.INVALID_ARGUMENT

    return True


def test_the_highest_election_id_is_primary(service: P4RuntimeService) -> None:
    first, second, third = Peer(service), Peer(service), Peer(service)

    assert first.announce(5) == [(Code.OK, 5)]
    assert second.announce(3) == [(Code.ALREADY_EXISTS, 5)]
    assert first.told() == []
    assert third.announce(9 << 64) == [(Code.OK, 9 << 64)]
    assert first.told() == second.told() == [(Code.ALREADY_EXISTS, 9 << 64)]
    assert [may_write(service, election) for election in (5, 9 << 64, 9, None)] == [
        False,
        True,
        False,
        False,
    ]


def test_without_a_primary_nobody_writes_until_the_highest_id_is_back(
    service: P4RuntimeService,
) -> None:
    first, second = Peer(service), Peer(service)
    first.announce(5)
    second.announce(3)
    first.stream.close()

    assert second.told() == [(Code.NOT_FOUND, 5)]
    assert not may_write(service, 3)
    assert second.announce(4) == [(Code.NOT_FOUND, 5)]
    assert second.announce(5) == [(Code.OK, 5)]
    assert may_write(service, 5)


def test_a_primary_can_step_down(service: P4RuntimeService) -> None:
    first, second = Peer(service), Peer(service)
    first.announce(5)
    second.announce(3)
    second.told()

    assert first.announce(2) == [(Code.NOT_FOUND, 5)]
    assert second.told() == [(Code.NOT_FOUND, 5)]


def test_no_election_id_is_always_a_backup_and_roles_are_apart(service: P4RuntimeService) -> None:
    standby, role_holder = Peer(service), Peer(service)

    assert standby.announce(None) == [(Code.NOT_FOUND, 0)]
    assert role_holder.announce(1, role="other") == [(Code.OK, 1)]
    assert standby.told() == []
    assert [may_write(service, 1, role) for role in ("", "other", "unknown")] == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("election", "device", "role", "code"),
    [(5, 1, "", Code.INVALID_ARGUMENT), (6, 2, "", Code.NOT_FOUND)],
)
def test_a_new_stream_that_cannot_be_accepted_ends(
    service: P4RuntimeService, election: int, device: int, role: str, code: Code
) -> None:
    Peer(service).announce(5)

    with pytest.raises(StatusError) as caught:
        Peer(service).announce(election, device, role)

    assert caught.value.code == code


@pytest.mark.parametrize(("device", "role"), [(2, ""), (1, "other")])
def test_device_and_role_stay_for_the_life_of_a_stream(
    service: P4RuntimeService, device: int, role: str
) -> None:
    peer = Peer(service)
    peer.announce(5)

    with pytest.raises(StatusError) as caught:
        peer.announce(6, device, role)

    assert caught.value.code == Code.FAILED_PRECONDITION


@pytest.fixture
def packet_io(program: Any, control: Any) -> Any:
    """Packet-outs name their port.

    Other frames go to the controller with the port they came from.
    """
    p = program
    p.header("packet_out", emit=False, port=9, pad=7)
    p.header("packet_in", port=9, pad=7)
    start = {"type": "field", "value": ["standard_metadata", "ingress_port"]}
    p.state("start", [], [start], {f"0x{CPU:04x}": "out", None: None})
    p.state("out", [p.extract("packet_out")])
    condition = p.op("==", "packet_out.$valid$", 1)
    p.root["pipelines"][0]["conditionals"] = [
        {"name": "if", "id": 0, "expression": condition, "true_next": "send", "false_next": "punt"}
    ]
    p.run("send", [p.call("assign", "standard_metadata.egress_spec", "packet_out.port")])
    to_cpu = [p.call("add_header", p.header_operand("packet_in"))]
    to_cpu.append(p.call("assign", "packet_in.port", "standard_metadata.ingress_port"))
    p.run("punt", [*to_cpu, p.call("assign", "standard_metadata.egress_spec", CPU)])
    p.root["pipelines"][0]["init_table"] = "if"

    def describe(p4info: Any) -> None:
        for i, name in enumerate(("packet_in", "packet_out")):
            item = p4info.controller_packet_metadata.add()
            item.preamble.id, item.preamble.name = 100 + i, name
            item.metadata.add(id=1, name="port", bitwidth=9)
            item.metadata.add(id=2, name="pad", bitwidth=7)

    return control(p, cpu_port=CPU, edit=describe)


def packet_out(port: bytes, *more: tuple[int, bytes]) -> p4.StreamMessageRequest:
    request = p4.StreamMessageRequest()
    request.packet.payload = b"frame"
    for number, value in ((1, port), *more):
        request.packet.metadata.add(metadata_id=number, value=value)

    return request


def test_a_packet_out_leaves_where_its_metadata_says(packet_io: Any) -> None:
    packet_io.stream.receive(packet_out(b"\x03", (2, b"\0")))
    assert packet_io.bench.drain([]) == [(3, b"frame")]


def test_a_packet_in_carries_its_metadata(packet_io: Any) -> None:
    assert packet_io.bench.send(b"frame", port=5) == []

    packet = packet_io.received[-1].packet

    assert (packet.payload, [(m.metadata_id, m.value) for m in packet.metadata]) == (
        b"frame",
        [(1, b"\5"), (2, b"\0")],
    )


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (packet_out(b"\x03"), Code.INVALID_ARGUMENT),
        (packet_out(b"\x03", (2, b"\0"), (3, b"\0")), Code.INVALID_ARGUMENT),
        (packet_out(b"\xff\xff", (2, b"\0")), Code.OUT_OF_RANGE),
        (p4.StreamMessageRequest(digest_ack=p4.DigestListAck(digest_id=7)), Code.INVALID_ARGUMENT),
        (p4.StreamMessageRequest(), Code.UNIMPLEMENTED),
    ],
)
def test_bad_stream_messages_are_answered_with_an_error(
    packet_io: Any, request_: Any, code: Code
) -> None:
    packet_io.stream.receive(request_)

    assert packet_io.received[-1].error.canonical_code == code
    assert packet_io.bench.drain([]) == []


def test_a_backup_may_not_send_packets(packet_io: Any) -> None:
    peer = Peer(packet_io.service)
    peer.announce(0)
    peer.messages.clear()
    peer.stream.receive(packet_out(b"\x03", (2, b"\0")))

    assert peer.messages[-1].error.canonical_code == Code.PERMISSION_DENIED


@pytest.fixture
def learning(program: Any, control: Any) -> Any:
    """Every frame's first two bytes are a digest."""
    p = program
    p.header("h", a=8, b=8)
    p.state("start", [p.extract("h")])
    p.root["learn_lists"] = [
        {"name": "learn", "id": 1, "elements": [p.field("h.a"), p.field("h.b")]}
    ]
    p.run("digest", [p.call("generate_digest", 1, 1)])

    return control(p)


def enable(c: Any, kind: str = "INSERT", **config: int) -> None:
    c.write((kind, p4.Entity(digest_entry=p4.DigestEntry(digest_id=DIGEST + 1, config=config))))


def lists(c: Any) -> list[list[list[bytes]]]:
    digests = [m.digest for m in c.received if m.HasField("digest")]
    return [
        [[member.bitstring for member in data.struct.members] for data in digest.data]
        for digest in digests
    ]


def test_digests_are_bundled_and_distinct(learning: Any) -> None:
    learning.bench.send(b"\0\0")
    enable(learning, max_list_size=2, max_timeout_ns=1000)
    for frame in (b"\1\2", b"\1\2", b"\3\4", b"\5\6"):
        learning.bench.send(frame)

    assert lists(learning) == [[[b"\1", b"\2"], [b"\3", b"\4"]]]
    assert learning.service.next_tick_ps() == 1_000_000

    learning.bench.now_ps = 1_000_000
    learning.service.tick()

    assert lists(learning)[1:] == [[[b"\5", b"\6"]]]


def test_a_digest_is_not_repeated_until_it_is_acknowledged(learning: Any) -> None:
    enable(learning, max_list_size=1, ack_timeout_ns=1000)
    for _ in range(2):
        learning.bench.send(b"\1\2")

    assert len(lists(learning)) == 1

    sent = next(m.digest for m in learning.received if m.HasField("digest"))
    ack = p4.DigestListAck(digest_id=sent.digest_id, list_id=sent.list_id)
    learning.stream.receive(p4.StreamMessageRequest(digest_ack=ack))
    learning.bench.send(b"\1\2")

    assert len(lists(learning)) == 2

    for now_ps, number in ((999_999, 2), (1_000_000, 3)):
        learning.bench.now_ps = now_ps
        learning.bench.send(b"\1\2")
        assert len(lists(learning)) == number
