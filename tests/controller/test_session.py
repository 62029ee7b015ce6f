"""One switch over P4Runtime: a scripted peer answers, the session sends the messages it should and
explains errors.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from p4.v1 import p4runtime_pb2

import p4src
from controller.entries import Change, Entry, Kind
from controller.errors import CallError, NotPrimaryError, RpcFailure, UnreachableError, WriteError
from controller.pipeline import Pipeline
from controller.session import Session

OK, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, UNKNOWN, UNAVAILABLE = 0, 5, 6, 7, 2, 14
OFAN = Pipeline.read(p4src.p4info_path("ofan"))
ROUTE = Entry("routes", ((0x0A000100, 24),), "to_group", (7, 3, 4, 1, 0x1234))
SLOT = Entry("schedule", (70_000, 0), "take_port", (4,))


@dataclass
class Peer:
    """A switch that notes its messages; `outcomes` are the codes of the next write's updates."""

    arbitration: int = OK
    is_open: bool = True
    outcomes: list[int] | None = None
    failure: RpcFailure | None = None
    sent: list[Any] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    send: Callable[[Any], None] = lambda message: None

    def write(self, request: Any) -> None:
        self._note(request)
        if self.outcomes is not None:
            details = [
                p4runtime_pb2.Error(canonical_code=code, message=f"said {code}")
                for code in self.outcomes
            ]
            raise RpcFailure(UNKNOWN, "some failed", details)

    def read(self, request: Any) -> Iterable[Any]:
        self._note(request)
        return self.answers

    def set_pipeline(self, request: Any) -> None:
        self._note(request)

    def get_pipeline(self, request: Any) -> Any:
        self._note(request)

    def open_stream(self, send: Callable[[Any], None]) -> "Peer":
        self.send = send
        return self

    def receive(self, message: Any) -> None:
        self._note(message)
        if message.WhichOneof("update") == "arbitration":
            answer = p4runtime_pb2.StreamMessageResponse()
            answer.arbitration.status.code = self.arbitration
            self.send(answer)

    def close(self) -> None:
        self.sent.append("close")

    def _note(self, message: Any) -> None:
        if self.failure is not None:
            raise self.failure
        self.sent.append(message)


def opened(peer: Peer) -> Session:
    """Return an open session with a peer."""
    session = Session(peer, OFAN, 9, "edge0_1", election_id=5)
    session.open()
    peer.sent.clear()
    return session


def test_open_asks_to_be_primary() -> None:
    peer = Peer()
    Session(peer, OFAN, 9, election_id=5).open()
    (message,) = peer.sent
    assert (message.arbitration.device_id, message.arbitration.election_id.low) == (9, 5)


def test_another_primary_is_reported() -> None:
    with pytest.raises(
        NotPrimaryError, match=r"^edge0_1: election id 5 lost against another controller's$"
    ):
        opened(Peer(arbitration=ALREADY_EXISTS))


def test_a_peer_that_says_nothing_is_unreachable() -> None:
    peer = Peer()
    peer.receive = lambda message: None  # type: ignore[method-assign]
    with pytest.raises(UnreachableError, match="edge0_1: no answer within 0 s"):
        Session(peer, OFAN, 9, "edge0_1").open(deadline_s=0)


def test_push_sends_the_contract_and_the_program() -> None:
    peer = Peer()
    opened(peer).push(b"{}", cookie=77)
    (request,) = peer.sent
    assert (request.device_id, request.election_id.low, request.config.p4_device_config) == (
        9,
        5,
        b"{}",
    )
    assert request.config.p4info == OFAN.p4info
    assert request.action == request.VERIFY_AND_COMMIT
    assert request.config.cookie.cookie == 77


def test_an_update_has_the_ids_and_shortest_values_of_its_entry() -> None:
    peer = Peer()
    opened(peer).write((Change(Kind.INSERT, ROUTE), Change(Kind.DELETE, SLOT)))
    (request,) = peer.sent
    insert, delete = request.updates
    entry = insert.entity.table_entry
    assert (insert.type, delete.type) == (1, 3)
    assert (entry.table_id, entry.match[0].lpm.prefix_len, entry.match[0].lpm.value) == (
        0x02000001,
        24,
        b"\x0a\0\1\0",
    )
    assert [param.value for param in entry.action.action.params] == [
        b"\7",
        b"\3",
        b"\4",
        b"\1",
        b"\x12\x34",
    ]
    assert [field.exact.value for field in delete.entity.table_entry.match] == [
        b"\x01\x11\x70",
        b"\0",
    ]
    assert not delete.entity.table_entry.HasField("action")


def test_an_empty_batch_is_not_sent() -> None:
    peer = Peer()
    opened(peer).write(())
    assert peer.sent == []


def test_default_entries_are_marked_as_such() -> None:
    peer = Peer()
    opened(peer).write((Change(Kind.MODIFY, Entry("ecn", (), "mark_above", (80_000,))),))
    assert peer.sent[0].updates[0].entity.table_entry.is_default_action


@pytest.mark.parametrize(
    "entry",
    [ROUTE, SLOT, Entry("routes", ((0, 0),), "drop", ()), Entry("ecn", (), "mark_above", (1,))],
)
def test_what_is_written_is_read_back(entry: Entry) -> None:
    answer = p4runtime_pb2.ReadResponse()
    OFAN.fill(answer.entities.add().table_entry, entry)
    assert opened(Peer(answers=[answer])).read() == [entry]


def test_refused_updates_are_named_with_what_they_asked() -> None:
    session = opened(Peer(outcomes=[OK, ALREADY_EXISTS, NOT_FOUND]))
    changes = tuple(Change(Kind.INSERT, entry) for entry in (ROUTE, SLOT, ROUTE))
    with pytest.raises(WriteError) as caught:
        session.write(changes)
    assert [(f.index, f.change.entry, f.code) for f in caught.value.failures] == [
        (1, SLOT, 6),
        (2, ROUTE, 5),
    ]
    assert str(caught.value) == (
        "edge0_1: UNKNOWN: 2 of 3 updates refused; first: update 1,"
        " INSERT schedule[70000, 0] = take_port(4): ALREADY_EXISTS: said 6"
    )


def test_a_write_refused_as_a_whole_has_one_code() -> None:
    peer = Peer()
    session = opened(peer)
    peer.failure = RpcFailure(PERMISSION_DENIED, "not primary")
    with pytest.raises(CallError, match=r"^edge0_1: PERMISSION_DENIED: not primary$"):
        session.write((Change(Kind.INSERT, ROUTE),))


def test_a_dead_switch_is_unreachable() -> None:
    peer = Peer()
    session = opened(peer)
    peer.failure = RpcFailure(UNAVAILABLE, "connection refused")
    with pytest.raises(UnreachableError, match=r"^edge0_1: connection refused$"):
        session.push(b"{}")


def test_packets_go_both_ways() -> None:
    peer, received = Peer(), []
    session = opened(peer)
    session.on_packet_in = lambda port, frame: received.append((port, frame))
    session.packet_out(300, b"out")
    message = p4runtime_pb2.StreamMessageResponse()
    message.packet.payload = b"in"
    message.packet.metadata.add(metadata_id=1, value=b"\1\2")
    peer.send(message)
    assert [item.value for item in peer.sent[0].packet.metadata] == [b"\x01\x2c", b"\0"]
    assert received == [(258, b"in")]


def test_a_refused_packet_out_is_told() -> None:
    peer, told = Peer(), []
    opened(peer).on_refused = lambda error: None
    session = opened(peer)
    session.on_refused = lambda error: told.append(str(error))
    message = p4runtime_pb2.StreamMessageResponse()
    message.error.canonical_code, message.error.message = PERMISSION_DENIED, "no"
    peer.send(message)
    assert told == ["edge0_1: PERMISSION_DENIED: no"]


def test_registers_are_read_in_order() -> None:
    answer = p4runtime_pb2.ReadResponse()
    for index in (2, 0, 1):
        cell = answer.entities.add().register_entry
        cell.index.index, cell.data.bitstring = index, bytes([index * 3])
    peer = Peer(answers=[answer])
    assert opened(peer).read_register("pointers") == [0, 3, 6]
    assert peer.sent[-1].entities[0].register_entry.register_id == 0x16000002


def test_a_closed_session_sends_nothing() -> None:
    peer = Peer()
    session = opened(peer)
    session.close()
    with pytest.raises(UnreachableError, match="edge0_1: the session is not open"):
        session.packet_out(1, b"")
    assert peer.sent == ["close"]
