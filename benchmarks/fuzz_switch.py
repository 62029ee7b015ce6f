"""Throw damaged packets, programs and messages at the switch: it must not fail.

python benchmarks/fuzz_switch.py packets --count 10000000
    every program of p4src, damaged packets and all truncations
python benchmarks/fuzz_switch.py programs --count 20000
    damaged BMv2 JSON: one clear error, or a program that runs
python benchmarks/fuzz_switch.py server --count 20000
    hostile messages over real gRPC: a status, and it serves on
"""

import json
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from queue import Queue
from typing import Any

import click
import grpc

import p4src
from controller.fabric_controller import FabricController
from controller.pipeline import Pipeline
from controller.session import InProcess, Session
from emulation.compiler import Program, compile_file
from emulation.softswitch.errors import PipelineError
from emulation.softswitch.p4runtime import P4RuntimeService, StatusError
from emulation.softswitch.switch import Switch
from fattree.addressing import host_ip, host_mac, switch_ip, switch_name
from fattree.experiment import Fabric, Scenario
from fattree.policies import POLICIES
from fattree.topology import FatTree
from hostagent.packets import AckFrames, DataFrames, Ends, wrap

# isort: split
from google.protobuf.descriptor import FieldDescriptor
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

ROOT = Path(__file__).resolve().parents[1]
CPU_PORT = 510
EDGE = 0
ETHERNET = 14
CHECKSUM = 24
IP_END = 34
WORDS = struct.Struct(">10H")
PROGRAMS = sorted({policy.program for policy in POLICIES.values()})
VALUES = [
    None,
    True,
    False,
    -1,
    0,
    1,
    5,
    1 << 70,
    "",
    "h",
    "0xzz",
    "0x-1",
    "__import__('os')",
    [],
    ["h", "a"],
    {},
    {"op": "+"},
    0.5,
]
WAIT_S = 30


class FuzzFailure(Exception):
    """The switch failed; the message says how to make it fail again."""


# Packets


def programmed(program: str) -> Switch:
    """Return an edge switch of a k = 4 fat-tree with a program and the controller's entries."""
    return served(program)[0]


def served(program: str) -> tuple[Switch, P4RuntimeService, Program]:
    """Return the same switch with its P4Runtime service and its program."""
    policy = next(policy.slug for policy in POLICIES.values() if policy.program == program)
    scenario = Scenario(policy=policy, fabric=Fabric(k=4))
    compiled = compile_file(p4src.path(program), defines={"MAX_UPLINKS": "8"})
    pipeline = Pipeline(compiled.p4info)
    tree = scenario.tree
    switch = Switch(
        EDGE + 1, lambda: 0, random.Random(1).randint, tree.ports(EDGE), cpu_port=CPU_PORT
    )
    service = P4RuntimeService(switch)
    session = Session(InProcess(service, StatusError), pipeline, EDGE + 1, switch_name(tree, EDGE))
    session.open()
    session.push(json.dumps(compiled.json).encode())

    for step in FabricController(scenario, pipeline, ()).start():
        if step.switch == EDGE:
            session.write(step.changes)

    return switch, service, compiled


def valid_packets(tree: FatTree) -> list[tuple[int, bytes]]:
    """Return (port, frame) pairs: data and ACKs, near and far, tunnels, ARP, packet-outs."""
    packets = []
    for source, destination in ((0, 1), (0, 2), (0, 15), (15, 0), (2, 1)):
        ends = Ends(
            host_mac(tree, source),
            host_mac(tree, destination),
            host_ip(tree, source),
            host_ip(tree, destination),
        )

        port = 1 if source == 0 else 3
        data = DataFrames(ends, 7, 256).frame(1234, 5)
        ack = AckFrames(ends, 7).frame(1234, 5, False, 6, 0b1011)
        packets += [
            (port, data),
            (port, ack),
            (port, wrap(data, host_ip(tree, source), switch_ip(tree, tree.switches - 1))),
        ]

    arp = bytes.fromhex(
        "ffffffffffff0200000000000806000108000604000102000000000000000000000000000000"
    ) + bytes(4)
    return [
        *packets,
        (1, arp),
        (CPU_PORT, b"\0\x80" + packets[0][1]),
        (CPU_PORT, b"\xff\xff" + arp),
    ]


def truncations(packets: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield every beginning of every packet."""
    for port, frame in packets:
        yield from ((port, frame[:length]) for length in range(len(frame) + 1))


def with_checksum(frame: bytes) -> bytes:
    """Return a frame with the right checksum where an IPv4 header would be."""
    if len(frame) < IP_END:
        return frame

    words = WORDS.unpack_from(frame, ETHERNET)
    total: int = sum(words) - words[5]
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)

    return frame[:CHECKSUM] + (total ^ 0xFFFF).to_bytes(2, "big") + frame[CHECKSUM + 2 :]


def damaged(
    packets: list[tuple[int, bytes]], count: int, rng: random.Random
) -> Iterator[tuple[int, bytes]]:
    """Yield packets overwritten at random, cut off, made longer, or random altogether."""
    draw = rng.random
    noise = rng.randbytes
    for _ in range(count):
        port, frame = packets[int(draw() * len(packets))]
        kind = draw()
        if kind < 0.05:
            frame = noise(int(draw() * 200))
        elif kind < 0.9:
            at = int(draw() * min(len(frame), 80))
            size = 1 + int(draw() * 4)
            frame = frame[:at] + noise(size) + frame[at + size :]

            if kind < 0.5:
                frame = with_checksum(frame)

        if draw() < 0.2:
            frame = frame[: int(draw() * (len(frame) + 1))]

        yield port, frame


def feed(switch: Switch, packets: Iterable[tuple[int, bytes]]) -> None:
    """Put packets through a switch; FuzzFailure names the first that makes it fail."""
    ingress = switch.ingress
    egress = switch.egress
    requeued = switch.take_requeued
    port = 0
    frame = b""

    try:
        for port, frame in packets:
            waiting = ingress(port, frame)
            while waiting:
                egress(waiting.pop())
                waiting += requeued()
    except Exception as error:
        raise FuzzFailure(f"port {port}, frame {frame.hex()}: {error!r}") from error


def check_counts(switch: Switch) -> None:
    """Raise FuzzFailure unless every packet is accounted for."""
    counts = asdict(switch.counts)
    drops = sum(count for name, count in counts.items() if name.startswith("dropped"))
    if (
        counts["received"] + counts["copies"]
        != counts["transmitted"] + counts["packet_ins"] + drops
    ):
        raise FuzzFailure(f"packets are missing: {counts}")


def fuzz_packets(program: str, count: int, seed: int = 1) -> dict[str, Any]:
    """Send all truncations and `count` damaged packets to a program.

    Return what has become of them.
    """
    switch = programmed(program)
    valid = valid_packets(FatTree(4))
    started = time.process_time()
    feed(switch, truncations(valid))
    feed(switch, damaged(valid, count, random.Random(seed)))
    check_counts(switch)

    return {
        "program": program,
        "cpu_s": round(time.process_time() - started, 1),
        **asdict(switch.counts),
    }


# Programs


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value inside."""
    yield path
    children = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    )

    for key, child in children:
        yield from places(child, (*path, key))


def value_at(node: Any, path: tuple[Any, ...]) -> Any:
    """Return the value at a path."""
    for key in path:
        node = node[key]

    return node


def mutated(source: bytes, paths: list[tuple[Any, ...]], rng: random.Random) -> bytes:
    """Return a program with values replaced, moved, removed or doubled, or with bytes changed."""
    if rng.random() < 0.1:
        at = rng.randrange(len(source))
        return source[:at] + rng.randbytes(rng.randrange(3)) + source[at + 1 :]

    root = json.loads(source)
    for _ in range(rng.randint(1, 3)):
        path = rng.choice(paths)
        try:
            parent = value_at(root, path[:-1])
            key = path[-1]
            _replace(parent, key, rng, lambda: value_at(json.loads(source), rng.choice(paths)))
        except (IndexError, KeyError, TypeError):
            continue

    return json.dumps(root).encode()


def _replace(parent: Any, key: Any, rng: random.Random, other: Callable[[], Any]) -> None:
    match rng.randrange(5):
        case 0:
            del parent[key]
        case 1:
            parent[key] = other()
        case 2 if isinstance(parent, list):
            parent.insert(key, parent[key])
        case 3 if isinstance(parent[key], int):
            parent[key] += rng.choice([-1, 1, 1 << 16])
        case _:
            parent[key] = rng.choice(VALUES)


def fuzz_program(source: bytes, rng: random.Random) -> bool:
    """Load a damaged program and run packets.

    Return whether it was loaded, FuzzFailure where anything but one line came.
    """
    try:
        switch = Switch(
            1, clock=lambda: 0, random=lambda low, _high: low, ports=range(8), cpu_port=CPU_PORT
        )
        switch.load(source)
    except PipelineError as error:
        if "\n" in str(error):
            raise FuzzFailure(f"more than one line: {error}") from error

        return False

    for frame in (
        b"",
        rng.randbytes(9),
        rng.randbytes(90),
        bytes(12) + b"\x08\x00\x45" + rng.randbytes(60),
    ):
        for pending in switch.ingress(1, frame)[:9]:
            switch.egress(pending)

    return True


def fuzz_programs(sources: Iterable[bytes], count: int, seed: int = 1) -> dict[str, Any]:
    """Damage programs `count` times; return how many were still loaded."""
    rng = random.Random(seed)
    loaded = 0
    slowest = 0.0
    pool = [(source, [path for path in places(json.loads(source)) if path]) for source in sources]

    for number in range(count):
        source = mutated(*rng.choice(pool), rng)
        started = time.monotonic()
        try:
            loaded += fuzz_program(source, rng)
        except Exception as error:
            place = Path(tempfile.gettempdir()) / "fuzzed-program.json"
            place.write_bytes(source)
            raise FuzzFailure(f"program {number}, kept as {place}: {error!r}") from error

        slowest = max(slowest, time.monotonic() - started)

    return {
        "programs": count,
        "loaded": loaded,
        "refused": count - loaded,
        "slowest_s": round(slowest, 2),
    }


# The P4Runtime server


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Run a switch process without ports; yield its address."""
    address = f"unix:{folder / 'grpc'}"
    options = [
        "--no-p4",
        "--device-id",
        "1",
        "--",
        "--grpc-server-addr",
        address,
        "--cpu-port",
        str(CPU_PORT),
    ]

    command = [sys.executable, "-m", "emulation.softswitch.process", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        try:
            assert process.stdout is not None
            if "ready" not in process.stdout.readline():
                raise FuzzFailure("the switch did not start")

            yield address
            if process.poll() is not None:
                raise FuzzFailure(f"the switch ended with status {process.returncode}")
        finally:
            process.terminate()


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
        """Open a stream, send a few random messages, read what comes, close it."""
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
        wanted = p4runtime_pb2.ReadRequest(device_id=1)
        wanted.entities.add().table_entry.table_id = table.preamble.id
        answers = list(self.stub.Read(wanted, timeout=WAIT_S))

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
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as address:
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


@click.group(help=__doc__.splitlines()[0], context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seed", type=int, default=1, show_default=True)
@click.pass_context
def main(context: click.Context, seed: int) -> None:
    """Fuzz the switch."""
    context.obj = seed


@main.command()
@click.option("--count", type=int, default=100_000, show_default=True, help="Packets per program.")
@click.option(
    "--program",
    "programs",
    multiple=True,
    type=click.Choice(PROGRAMS),
    help="Only this one; repeatable.",
)
@click.pass_obj
def packets(seed: int, count: int, programs: tuple[str, ...]) -> None:
    """Damaged packets, and every truncation of valid ones."""
    for program in programs or PROGRAMS:
        print(json.dumps(fuzz_packets(program, count, seed)), flush=True)


@main.command()
@click.option("--count", type=int, default=1000, show_default=True)
@click.pass_obj
def programs(seed: int, count: int) -> None:
    """Damaged BMv2 JSON: our programs and the compiler's test cases."""
    cases = sorted((ROOT / "tests" / "emulation" / "compiler" / "cases").glob("*.p4"))
    sources = [
        json.dumps(compile_file(path).json).encode()
        for path in [*map(p4src.path, PROGRAMS), *cases]
    ]

    print(json.dumps(fuzz_programs(sources, count, seed)))


@main.command("server")
@click.option("--count", type=int, default=1000, show_default=True)
@click.pass_obj
def server_command(seed: int, count: int) -> None:
    """Hostile P4Runtime messages over gRPC on a Unix socket."""
    print(json.dumps(fuzz_server(count, seed)))


if __name__ == "__main__":
    try:
        main()
    except FuzzFailure as failure:
        sys.exit(f"FAILED: {failure}")
