"""Hostile messages to the P4Runtime server, over real gRPC: a status, and it serves on."""

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import grpc

import p4src
from benchmarks.fuzz.failure import CPU_PORT, FuzzFailure
from ofan_p4.compiler import compile_file

# isort: split
from google.protobuf.descriptor import FieldDescriptor
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 30
MOST_BYTES = 1 << 30


@contextmanager
def switch_process(folder: Path, options: Sequence[str]) -> Iterator[str]:
    """Run a switch process without ports; yield the address of its gRPC server.

    At the end it must be alive, have said nothing of a traceback, and hold less than 1 GiB.
    """
    address = f"unix:{folder / 'grpc'}"
    target_options = ["--", "--grpc-server-addr", address, "--cpu-port", str(CPU_PORT)]
    log = folder / "stderr"
    with (
        log.open("w") as said,
        subprocess.Popen(
            [sys.executable, "-m", "ofan_p4.softswitch.daemon.process", *options, *target_options],
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            cwd=ROOT,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            if "ready" not in process.stdout.readline():
                raise FuzzFailure(f"the switch did not start: {log.read_text()}")

            yield address
            if process.poll() is not None:
                raise FuzzFailure(f"the switch ended with status {process.returncode}")
            if "Traceback" in log.read_text():
                raise FuzzFailure(log.read_text())
            if (peak := _peak_bytes(process.pid)) > MOST_BYTES:
                raise FuzzFailure(f"the switch took {peak >> 20} MiB")
        finally:
            process.terminate()


def _peak_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


class Hostile:
    """A controller that is primary and sends anything."""

    def __init__(self, address: str, rng: random.Random) -> None:
        self.rng = rng
        self.codes: dict[str, int] = {}
        self.channel = grpc.insecure_channel(address)
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(self.channel)
        compiled = compile_file(p4src.path("ofan"), defines={"MAX_UPLINKS": "8"})
        self.source = json.dumps(compiled.json).encode()
        self.p4info = compiled.p4info
        self.ids = [
            item.preamble.id
            for items in (self.p4info.tables, self.p4info.actions, self.p4info.registers)
            for item in items
        ]

    def one(self) -> None:
        """Make one call or open one stream.

        Anything but a status, or the status of a crash, is a FuzzFailure.
        """
        kind = self.rng.randrange(8)
        calls = (self._raw, self._stream, self._config, self._unary)
        calls[min(kind, 3)]()

    def message(self, kind: Any, depth: int = 0) -> Any:
        """Return a random message."""
        message = kind()
        for item in message.DESCRIPTOR.fields:
            if self.rng.random() < (0.6 if depth < 6 else 0.1):
                self._fill(message, item, depth)

        return message

    def _fill(self, message: Any, item: Any, depth: int) -> None:
        count = self.rng.choice([0, 1, 1, 2]) if item.is_repeated else 1
        for _ in range(count):
            if item.message_type is not None:
                value = self.message(_class_of(message, item), depth + 1)
                target = getattr(message, item.name)
                (target.add() if item.is_repeated else target).CopyFrom(value)
                continue

            value = self._scalar(item)
            if item.is_repeated:
                getattr(message, item.name).append(value)
            else:
                setattr(message, item.name, value)

    def _scalar(self, item: Any) -> Any:
        rng = self.rng
        if (
            item.name.endswith("_id")
            and item.name not in ("device_id", "field_id", "param_id")
            and rng.random() < 0.8
        ):
            return rng.choice(self.ids) if rng.random() < 0.8 else rng.randrange(4)

        match item.cpp_type:
            case FieldDescriptor.CPPTYPE_BOOL:
                return rng.random() < 0.3
            case FieldDescriptor.CPPTYPE_STRING if item.type == FieldDescriptor.TYPE_BYTES:
                return rng.randbytes(rng.choice([0, 1, 1, 2, 4, 9]))
            case FieldDescriptor.CPPTYPE_STRING:
                return rng.choice(["", "", "x", "I.routes", "\u20ac"])
            case FieldDescriptor.CPPTYPE_ENUM:
                return rng.choice([0, 1, 2, 3, 4, 99])
            case FieldDescriptor.CPPTYPE_INT32 | FieldDescriptor.CPPTYPE_INT64:
                return rng.choice([0, 1, 2, 32, -1, 1 << 20, -(1 << 31), (1 << 31) - 1])
            case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
                return rng.random()

        return rng.choice([1, 1, 1, 0, 2, 3, (1 << 32) - 1])

    def _count(self, call: Callable[[], Any]) -> None:
        try:
            call()
            name = "OK"
        except grpc.RpcError as error:
            name = error.code().name
            details = error.details() or ""
            if "Unexpected" in details or name in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
                raise FuzzFailure(f"{name}: {details}") from error

        self.codes[name] = self.codes.get(name, 0) + 1

    def _raw(self) -> None:
        """Send bytes that are hardly a message."""
        name = self.rng.choice(
            [
                "Write",
                "Read",
                "SetForwardingPipelineConfig",
                "GetForwardingPipelineConfig",
                "Capabilities",
            ]
        )

        data = self.rng.randbytes(self.rng.randrange(60))
        if self.rng.random() < 0.1:
            data = nested(self.rng.choice([10, 1000, 20_000]))

        call = self.channel.unary_stream(f"/p4.v1.P4Runtime/{name}")
        self._count(lambda: list(call(data, timeout=WAIT_S)))

    def _unary(self) -> None:
        """Send a random request, mostly as the primary of the device."""
        kind, method = self.rng.choice(
            [
                (p4runtime_pb2.WriteRequest, self.stub.Write),
                (p4runtime_pb2.WriteRequest, self.stub.Write),
                (p4runtime_pb2.ReadRequest, self.stub.Read),
                (
                    p4runtime_pb2.GetForwardingPipelineConfigRequest,
                    self.stub.GetForwardingPipelineConfig,
                ),
            ]
        )

        request = self.message(kind)
        if self.rng.random() < 0.9:
            self._pretend(request)

        self._count(
            lambda: (
                list(answer)
                if hasattr(answer := method(request, timeout=WAIT_S), "__next__")
                else answer
            )
        )

    def _pretend(self, request: Any) -> None:
        request.device_id = 1
        for name, value in (("role", ""), ("atomicity", 0)):
            if hasattr(request, name):
                setattr(request, name, value)

        if hasattr(request, "election_id"):
            request.election_id.high = 0
            request.election_id.low = 1

    def _config(self) -> None:
        """Set a pipeline from a random, or a real but damaged, P4Info."""
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(action=self.rng.randrange(6))
        self._pretend(request)
        request.config.p4_device_config = self.source
        data = bytearray(self.p4info.SerializeToString())

        for _ in range(self.rng.randrange(4)):
            data[self.rng.randrange(len(data))] = self.rng.randrange(256)

        try:
            request.config.p4info.ParseFromString(bytes(data))
        except Exception:  # the damage is such that there is no message to send
            return

        self._count(lambda: self.stub.SetForwardingPipelineConfig(request, timeout=WAIT_S))

    def _stream(self) -> None:
        """Open a stream, send a few random messages, read the answers, close it."""
        messages = [
            self.message(p4runtime_pb2.StreamMessageRequest)
            for _ in range(self.rng.randrange(1, 4))
        ]

        for message in messages:
            if message.WhichOneof("update") == "arbitration":
                # A higher election id would rightly take the device away from the controller that
                # checks it.
                message.arbitration.election_id.high = 0
                message.arbitration.election_id.low = 0
                if self.rng.random() < 0.7:
                    message.arbitration.device_id = 1

        self._count(lambda: list(self.stub.StreamChannel(iter(messages), timeout=WAIT_S)))

    def check_alive(self) -> None:
        """Raise FuzzFailure unless a pipeline can be set and an entry written and read back."""
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(action=3)
        self._pretend(request)
        request.config.p4_device_config = self.source
        request.config.p4info.CopyFrom(self.p4info)
        self.stub.SetForwardingPipelineConfig(request, timeout=WAIT_S)
        table = next(table for table in self.p4info.tables if table.preamble.alias == "routes")
        read_request = p4runtime_pb2.ReadRequest(device_id=1)
        read_request.entities.add().table_entry.table_id = table.preamble.id
        answers = list(self.stub.Read(read_request, timeout=WAIT_S))

        if any(answer.entities for answer in answers):
            raise FuzzFailure("a fresh pipeline has entries")


def nested(depth: int) -> bytes:
    """Return a WriteRequest with a register's P4Data of tuples within tuples."""
    data = b""
    for _ in range(depth):
        data = _tagged(4, _tagged(1, data))

    for field in (3, 10, 2, 4):
        data = _tagged(field, data)

    return data


def _tagged(field: int, data: bytes) -> bytes:
    """Return a length-delimited field of a message."""
    size = len(data)
    length = b""
    while size >> 7:
        length = length + bytes([size & 0x7F | 0x80])
        size = size >> 7

    return bytes([field << 3 | 2]) + length + bytes([size]) + data


def _class_of(message: Any, item: Any) -> Any:
    """Return the class of a message field's values."""
    value = getattr(message, item.name)
    return type(value.add()) if item.is_repeated else type(value)


def fuzz_server(count: int, seed: int = 1) -> dict[str, Any]:
    """Make `count` hostile calls to a switch process; return the codes that they ended with."""
    with (
        tempfile.TemporaryDirectory() as folder,
        switch_process(Path(folder), ["--no-p4", "--device-id", "1"]) as address,
    ):
        peer = Hostile(address, random.Random(seed))
        stay = p4runtime_pb2.StreamMessageRequest()
        stay.arbitration.device_id = 1
        stay.arbitration.election_id.low = 1

        with _held(peer.stub, stay):
            peer.check_alive()
            for number in range(count):
                peer.one()
                if number % 500 == 499:
                    peer.check_alive()

            peer.check_alive()

        peer.channel.close()

    return {"calls": count, "codes": dict(sorted(peer.codes.items()))}


@contextmanager
def _held(stub: Any, hello: Any) -> Iterator[None]:
    """Hold a stream open whose controller stays primary."""
    requests: Queue[Any] = Queue()
    requests.put(hello)
    responses = stub.StreamChannel(iter(requests.get, None))

    if next(responses).arbitration.status.code:
        raise FuzzFailure("the first controller is not primary")

    yield
    requests.put(None)
