"""Sections 9.8 and 16 of the P4Runtime specification 1.4: packets, notifications and digests."""

from __future__ import annotations

from typing import Any

import pytest

from ofan_p4.softswitch.base.errors import Code
from tests.emulation.softswitch.conformance.peer import (
    CPU,
    Peer,
    action,
    entry,
    exact,
    frame,
    ids,
)

# isort: split
from p4.v1 import p4runtime_pb2 as p4


def packet_out(
    port: int, payload: bytes = b"\1\2\3\4\5\6\7\x08", more: dict[int, int] | None = None
) -> p4.StreamMessageRequest:
    """A PacketOut for a port; `more` is metadata by id."""
    message = p4.StreamMessageRequest()
    message.packet.payload = payload
    for number, value in {1: port, 2: 0, **(more or {})}.items():
        message.packet.metadata.add(metadata_id=number, value=value.to_bytes(2, "big"))

    return message


@pytest.mark.parametrize(
    ("message", "code", "kind"),
    [
        (packet_out(3, more={7: 1}), Code.INVALID_ARGUMENT, "packet_out"),
        (packet_out(512), Code.OUT_OF_RANGE, "packet_out"),
        (
            p4.StreamMessageRequest(digest_ack=p4.DigestListAck(digest_id=9)),
            Code.INVALID_ARGUMENT,
            "digest_list_ack",
        ),
        (p4.StreamMessageRequest(), Code.UNIMPLEMENTED, "other"),
    ],
    ids=[
        "metadata not of the P4Info",
        "metadata too wide",
        "an unknown digest",
        "neither of the three",
    ],
)
def test_stream_errors_name_their_message(message: Any, code: Code, kind: str) -> None:
    """16.6: the error has its code, and `details` names the message that it is about."""
    peer = Peer()
    peer.received.clear()
    peer.stream.receive(message)
    [response] = peer.received

    assert (response.error.canonical_code, response.error.WhichOneof("details")) == (code, kind)


def test_packet_outs_of_a_backup_are_dropped_and_said_so() -> None:
    """16.1: a PacketOut of a client that may not send it must be dropped."""
    peer = Peer()
    heard: list[p4.StreamMessageResponse] = []
    backup = peer.service.open_stream(heard.append)
    Peer.announce(backup, 0)
    backup.receive(packet_out(3))

    assert heard[-1].error.canonical_code == Code.PERMISSION_DENIED
    assert peer.switch.take_requeued() == []


def test_packet_ins_go_to_the_primary_with_their_metadata() -> None:
    """16.1: one metadata field for each in the P4Info."""
    peer = Peer()
    heard: list[p4.StreamMessageResponse] = []
    Peer.announce(peer.service.open_stream(heard.append), 0)
    heard.clear()
    peer.write(("INSERT", entry("exact_table", exact(5), action("forward", CPU))))
    peer.send(frame(5), port=6)
    packet = peer.received[-1].packet

    assert (packet.payload, {item.metadata_id: item.value for item in packet.metadata}) == (
        frame(5),
        {1: b"\6", 2: b"\0"},
    )
    assert heard == []


def test_idle_notifications_name_the_entry_and_start_again() -> None:
    """16.4: key, metadata and timeout of the entry, nanoseconds since the epoch.

    The entry is named again after another timeout.
    """
    peer = Peer()
    peer.write(
        (
            "INSERT",
            entry(
                "idle_table", exact(5), action("NoAction"), "idle_timeout_ns: 1000 metadata: 'm'"
            ),
        )
    )
    times = []
    for now_ns in (999, 1000, 1500, 2000):
        peer.now_ps = now_ns * 1000
        peer.received.clear()
        peer.service.tick()
        times += [
            (message.idle_timeout_notification.timestamp - 10**18, message)
            for message in peer.received
        ]

    assert [time for time, _ in times] == [1000, 2000]

    [item] = times[0][1].idle_timeout_notification.table_entry

    assert (item.match[0].exact.value, item.metadata, item.idle_timeout_ns) == (b"\5", b"m", 1000)


def test_digests_wait_are_distinct_and_come_again_without_ack() -> None:
    """9.8: lists of distinct messages after max_timeout_ns.

    A message that was sent is not sent again until it is acknowledged or ack_timeout_ns has passed.
    """
    peer = Peer()
    config = "config { max_timeout_ns: 1000 max_list_size: 9 ack_timeout_ns: 5000 }"
    peer.write(
        ("INSERT", f"digest_entry {{ digest_id: $learn_t {config} }}"),
        ("INSERT", entry("exact_table", exact(5), action("learn"))),
    )

    def learnt(now_ns: int, *highs: int) -> list[int]:
        """Return how many messages each list has that is sent within the timeout."""
        peer.received.clear()
        for time in (now_ns, now_ns + 1000):
            peer.now_ps = time * 1000
            for high in highs if time == now_ns else ():
                peer.send(frame(5, high=high))
            peer.service.tick()

        return [len(message.digest.data) for message in peer.received]

    assert learnt(0, 1, 2, 1) == [2], "distinct"
    assert peer.received[0].digest.timestamp == 10**18 + 1000
    assert learnt(2000, 1) == [], "sent and not acknowledged"
    assert learnt(7000, 1) == [1], "ack_timeout_ns has passed"

    ack = p4.StreamMessageRequest()
    ack.digest_ack.digest_id, ack.digest_ack.list_id = (
        ids()["learn_t"],
        peer.received[0].digest.list_id,
    )
    peer.stream.receive(ack)

    assert learnt(9000, 1) == [1], "acknowledged"
