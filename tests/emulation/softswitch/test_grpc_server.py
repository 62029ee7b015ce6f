"""P4Runtime over real gRPC on loopback: a switch without ports, its dataplane in a thread."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from queue import Queue
from typing import Any

import grpc
import pytest
from google.rpc import status_pb2
from p4.v1 import p4runtime_pb2 as p4
from p4.v1 import p4runtime_pb2_grpc

from ofan_p4.softswitch.base.errors import Code
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.daemon.clock import Clock
from ofan_p4.softswitch.daemon.dataplane import Dataplane
from ofan_p4.softswitch.daemon.grpc_server import GrpcThread, ServerError, Servicer
from ofan_p4.softswitch.daemon.log import Log
from ofan_p4.softswitch.daemon.process import SWITCH_INTERVAL_S
from ofan_p4.softswitch.daemon.sockets import open_link_events
from ofan_p4.softswitch.p4runtime import P4RuntimeService

CPU = 510
TABLE, ACTION = 1 << 24, 2 << 24
WAIT_S = 20


@pytest.fixture
def address() -> Iterator[str]:
    """A running switch that sends everything from the CPU port back to the CPU port."""
    clock = Clock()
    switch = Switch(1, clock=clock, random=lambda low, _high: low, ports=(), cpu_port=CPU)
    dataplane = Dataplane(switch, {}, clock, open_link_events(), Log("off", None))
    service = P4RuntimeService(switch)
    server = GrpcThread(Servicer(service, dataplane), "127.0.0.1:0", None)
    thread = threading.Thread(target=dataplane.run)
    thread.start()
    try:
        yield f"127.0.0.1:{server.start()}"
    finally:
        server.stop()
        dataplane.stop()
        thread.join()
        dataplane.close()


class Client:
    """A controller on a real channel."""

    def __init__(self, address: str) -> None:
        self.channel = grpc.insecure_channel(address)
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(self.channel)
        self.requests: Queue[p4.StreamMessageRequest | None] = Queue()
        self.responses = self.stub.StreamChannel(iter(self.requests.get, None), timeout=WAIT_S)

    def announce(self, election: int, device: int = 1) -> int:
        request = p4.StreamMessageRequest()
        request.arbitration.device_id = device
        request.arbitration.election_id.low = election
        self.requests.put(request)

        return int(next(self.responses).arbitration.status.code)

    def set_pipeline(self, source: bytes, p4info: Any, election: int = 1) -> None:
        request = p4.SetForwardingPipelineConfigRequest(device_id=1, action=3)
        request.election_id.low = election
        request.config.p4_device_config = source
        request.config.p4info.CopyFrom(p4info)
        self.stub.SetForwardingPipelineConfig(request, timeout=WAIT_S)

    def write(self, *entities: p4.Entity, election: int = 1) -> None:
        request = p4.WriteRequest(device_id=1)
        request.election_id.low = election
        for entity in entities:
            request.updates.add(type=p4.Update.INSERT, entity=entity)

        self.stub.Write(request, timeout=WAIT_S)

    def close(self) -> None:
        self.requests.put(None)
        self.channel.close()


@pytest.fixture
def connect(address: str) -> Iterator[Callable[[], Client]]:
    clients: list[Client] = []

    def start() -> Client:
        clients.append(Client(address))
        return clients[-1]

    yield start
    for client in clients:
        client.close()


@pytest.fixture
def echo(program: Any, control: Any) -> tuple[bytes, Any]:
    """A program that sends everything to the CPU port, with one table."""
    p = program
    p.header("h", kind=8)
    p.state("start", [p.extract("h")])
    nothing = p.action("nothing", [])
    p.table("t", {"h.kind": "exact"}, [nothing], default=nothing, following="punt")
    p.run("punt", [p.call("assign", "standard_metadata.egress_spec", CPU)])

    return p.source(), control(p).p4info


def entry(kind: int) -> p4.Entity:
    entity = p4.Entity()
    entity.table_entry.table_id = TABLE + 1
    entity.table_entry.match.add(field_id=1).exact.value = kind.to_bytes(2, "big")
    entity.table_entry.action.action.action_id = ACTION + 1

    return entity


def test_a_session_from_arbitration_to_reading_back(connect: Any, echo: Any) -> None:
    client = connect()

    assert client.announce(1) == Code.OK

    client.set_pipeline(*echo)
    client.write(*map(entry, range(100)))
    request = p4.ReadRequest(device_id=1, entities=[p4.Entity(table_entry=p4.TableEntry())])
    read = [
        entity
        for response in client.stub.Read(request, timeout=WAIT_S)
        for entity in response.entities
    ]

    assert len(read) == 100

    config = client.stub.GetForwardingPipelineConfig(
        p4.GetForwardingPipelineConfigRequest(device_id=1), timeout=WAIT_S
    )

    assert config.config.p4_device_config == echo[0]
    assert client.stub.Capabilities(p4.CapabilitiesRequest(), timeout=WAIT_S).p4runtime_api_version


def test_a_failed_write_carries_one_error_per_update(connect: Any, echo: Any) -> None:
    client = connect()
    client.announce(1)
    client.set_pipeline(*echo)

    with pytest.raises(grpc.RpcError) as caught:
        client.write(entry(1), entry(1), entry(0x100))

    assert caught.value.code() == grpc.StatusCode.UNKNOWN

    [trailer] = [
        value for key, value in caught.value.trailing_metadata() if key == "grpc-status-details-bin"
    ]
    status = status_pb2.Status.FromString(trailer)
    errors = [p4.Error.FromString(detail.value) for detail in status.details]

    assert [error.canonical_code for error in errors] == [
        Code.OK,
        Code.ALREADY_EXISTS,
        Code.OUT_OF_RANGE,
    ]
    assert status.details[0].type_url.endswith("p4.v1.Error")


@pytest.fixture
def threads_of_a_switch() -> Iterator[None]:
    """Let threads take turns as often as they do in the switch's own process."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("threads_of_a_switch")
def test_a_large_write_does_not_keep_other_clients_waiting(connect: Any, echo: Any) -> None:
    client, second_client = connect(), connect()
    client.announce(10)
    client.set_pipeline(*echo, election=10)
    request = p4.WriteRequest(device_id=1)
    request.election_id.low = 10
    client.write(*map(entry, range(256)), election=10)
    for number in range(100_000):
        request.updates.add(type=p4.Update.MODIFY, entity=entry(number % 256))

    # Were others answered after the write, there would be one answer or two, however fast the
    # machine, and however large the write.
    answers = 0
    for _ in range(4):
        writing = client.stub.Write.future(request, timeout=600)
        answers = 0
        while not writing.done():
            second_client.stub.Capabilities(p4.CapabilitiesRequest(), timeout=600)
            answers += 1
            time.sleep(0.01)

        if answers > 5:
            break

        # On a busy machine there are few in a short time.
        request.updates.extend(list(request.updates))

    assert answers > 5
    assert second_client.announce(9) == Code.ALREADY_EXISTS


def test_packets_go_out_and_come_in_while_another_controller_waits(connect: Any, echo: Any) -> None:
    primary, backup = connect(), connect()

    assert primary.announce(2) == Code.OK
    assert backup.announce(1) == Code.ALREADY_EXISTS

    primary.set_pipeline(*echo, election=2)
    for i in range(50):
        request = p4.StreamMessageRequest()
        request.packet.payload = bytes([i])
        primary.requests.put(request)

    assert [next(primary.responses).packet.payload for _ in range(50)] == [
        bytes([i]) for i in range(50)
    ]

    with pytest.raises(grpc.RpcError) as caught:
        backup.write(entry(1), election=1)

    assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED


def test_when_the_primary_disconnects_the_backup_hears_of_it(connect: Any) -> None:
    primary, backup = connect(), connect()
    primary.announce(2)
    backup.announce(1)
    primary.close()

    assert next(backup.responses).arbitration.status.code == Code.NOT_FOUND


def test_a_refused_arbitration_ends_the_stream_with_its_code(connect: Any) -> None:
    client = connect()

    with pytest.raises(grpc.RpcError) as caught:
        client.announce(1, device=7)

    assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def test_a_corrupt_pipeline_is_an_invalid_argument(connect: Any, echo: Any) -> None:
    client = connect()
    client.announce(1)

    with pytest.raises(grpc.RpcError) as caught:
        client.set_pipeline(b"{", echo[1])

    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_what_is_no_message_is_an_invalid_argument(connect: Any) -> None:
    call = connect().channel.unary_unary("/p4.v1.P4Runtime/Write")

    with pytest.raises(grpc.RpcError) as caught:
        call(b"\xff" * 20, timeout=WAIT_S)

    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_a_read_answers_its_valid_requests_before_its_errors(connect: Any, echo: Any) -> None:
    client = connect()
    client.announce(1)
    client.set_pipeline(*echo)
    client.write(entry(7))
    request = p4.ReadRequest(
        device_id=1, entities=[p4.Entity(table_entry=p4.TableEntry()), p4.Entity()]
    )
    answers = client.stub.Read(request, timeout=WAIT_S)

    assert len(next(answers).entities) == 1

    with pytest.raises(grpc.RpcError) as caught:
        next(answers)

    assert caught.value.code() == grpc.StatusCode.UNKNOWN


def test_a_taken_port_is_one_line(address: str) -> None:
    with pytest.raises(ServerError, match="already in use"):
        GrpcThread(Servicer(None, None), address, None).start()  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [3, 60, 400, 5000])
def test_the_details_of_a_long_batch_fit_into_metadata(connect: Any, echo: Any, count: int) -> None:
    client = connect()
    client.announce(1)
    client.set_pipeline(*echo)
    request = p4.WriteRequest(device_id=1)
    request.election_id.low = 1
    for _ in range(count):
        request.updates.add(type=p4.Update.INSERT, entity=entry(1))

    with pytest.raises(grpc.RpcError) as caught:
        client.stub.Write(request)

    # Every insertion but the first finds the entry there.
    assert caught.value.code() == grpc.StatusCode.UNKNOWN
    assert f"{count - 1} of {count} updates failed" in caught.value.details()

    trailer = dict(caught.value.trailing_metadata())["grpc-status-details-bin"]
    status = status_pb2.Status.FromString(trailer)
    details = []
    for item in status.details:
        detail = p4.Error()
        assert item.Unpack(detail)
        details.append(detail)

    codes = [detail.canonical_code for detail in details]

    assert codes == [Code.OK, *[Code.ALREADY_EXISTS] * (len(codes) - 1)]
    # All of them as far as there is room, with their messages while that is enough.
    assert len(codes) == count or f"the first {len(codes)} updates" in status.message
    assert (details[-1].message != "") == (count < 100)
