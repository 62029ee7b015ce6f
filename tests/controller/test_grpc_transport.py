"""The gRPC transport against a scripted server: calls arrive, and three-level errors come back as
updates' own.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import grpc
import pytest
from google.rpc import status_pb2
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

import p4src
from controller.entries import Change, Entry, Kind
from controller.errors import CallError, UnreachableError, WriteError
from controller.grpc_transport import GrpcTransport
from controller.pipeline import Pipeline
from controller.session import Session

ALREADY_EXISTS = 6
OFAN = Pipeline.read(p4src.p4info_path("ofan"))
ENTRY = Entry("schedule", (1, 0), "take_port", (3,))
CHANGES = (Change(Kind.INSERT, ENTRY), Change(Kind.INSERT, ENTRY))


class Server(p4runtime_pb2_grpc.P4RuntimeServicer):
    """A switch that makes everyone primary, refuses every second update, and answers packet-outs
    with packet-ins.
    """

    def StreamChannel(self, requests: Any, context: Any) -> Iterator[Any]:
        for request in requests:
            answer = p4runtime_pb2.StreamMessageResponse()
            if request.WhichOneof("update") == "arbitration":
                answer.arbitration.device_id = request.arbitration.device_id
            else:
                answer.packet.payload = request.packet.payload
            yield answer

    def Write(self, request: Any, context: Any) -> Any:
        status = status_pb2.Status(code=2, message="some failed")
        for number in range(len(request.updates)):
            status.details.add().Pack(
                p4runtime_pb2.Error(canonical_code=ALREADY_EXISTS * (number % 2), message="again")
            )
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        context.abort(grpc.StatusCode.UNKNOWN, "some failed")

    def Read(self, request: Any, context: Any) -> Iterator[Any]:
        for _ in range(2):
            answer = p4runtime_pb2.ReadResponse()
            OFAN.fill(answer.entities.add().table_entry, ENTRY)
            yield answer

    def SetForwardingPipelineConfig(self, request: Any, context: Any) -> Any:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "corrupt JSON")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Return a session with the scripted server."""
    address = f"unix:{tmp_path_factory.mktemp('grpc') / 'switch'}"
    server = grpc.server(ThreadPoolExecutor(4))
    p4runtime_pb2_grpc.add_P4RuntimeServicer_to_server(Server(), server)
    server.add_insecure_port(address)
    server.start()
    transport = GrpcTransport(address)
    opened = Session(transport, OFAN, 1, "edge0_0")
    opened.open()
    yield opened
    opened.close()
    transport.close()
    server.stop(None).wait()


def test_refused_updates_come_back_with_their_own_codes(session: Session) -> None:
    with pytest.raises(WriteError) as caught:
        session.write(CHANGES)
    (failure,) = caught.value.failures
    assert (failure.index, failure.change, failure.code, failure.message) == (
        1,
        CHANGES[1],
        ALREADY_EXISTS,
        "again",
    )


def test_streamed_answers_are_joined(session: Session) -> None:
    assert session.read("schedule") == [ENTRY, ENTRY]


def test_a_refused_pipeline_is_one_line(session: Session) -> None:
    with pytest.raises(CallError, match=r"^edge0_0: INVALID_ARGUMENT: corrupt JSON$"):
        session.push(b"{")


def test_packets_come_in_on_the_stream(session: Session) -> None:
    received: SimpleQueue[bytes] = SimpleQueue()
    session.on_packet_in = lambda _port, frame: received.put(frame)
    session.packet_out(1, b"hello")
    assert received.get(timeout=20) == b"hello"


def test_nobody_listening_is_unreachable(tmp_path: Path) -> None:
    transport = GrpcTransport(f"unix:{tmp_path / 'nobody'}", deadline_s=0.2)
    silent = Session(transport, OFAN, 1, "edge0_0")
    with pytest.raises(UnreachableError, match=r"edge0_0: no answer within 0\.2 s"):
        silent.open(deadline_s=0.2)
    with pytest.raises(UnreachableError, match="edge0_0: "):
        silent.write(CHANGES)
    silent.close()
    transport.close()
