"""Our switch and simple_switch_grpc run the same JSON: the same bytes must leave.

Programs that draw random numbers, or that look at queues, may choose another uplink; their packets
are compared without the number of the uplink. Needs root and simple_switch_grpc on the PATH.
"""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from benchmarks.fuzz.failure import CPU_PORT
from benchmarks.fuzz.packets import PROGRAMS, damaged, served, truncations, valid_packets
from fattree.shape.topology import FatTree
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.daemon.sockets import open_interface, receive
from ofan_p4.softswitch.p4runtime import P4RuntimeService

# isort: split
import grpc
from p4.v1 import p4runtime_pb2 as p4
from p4.v1 import p4runtime_pb2_grpc

BMV2 = "simple_switch_grpc"
pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which(BMV2) is None, reason=f"{BMV2} is not on the PATH"),
]
PORTS, UPLINKS = (1, 2, 3, 4), (3, 4)
FREE_CHOICE = {"adaptive", "ofan_jsq_start", "round_robin"}
COUNT = 10_000
WAIT_S = 20
BATCH = 8
SHORTEST = 15
# A busy machine's kernel loses frames on veth pairs now and then; then the run is repeated.
ATTEMPTS = 3
Sent = dict[int, list[bytes]]


def ip(line: str) -> None:
    subprocess.run(["ip", *line.split()], check=True, capture_output=True)


@contextmanager
def wires() -> Iterator[tuple[list[str], dict[int, socket.socket]]]:
    """Veth pairs for the ports: the names of the switch's ends, and sockets on the others."""
    with ExitStack() as stack:
        ends, sockets = [], {}
        for port in PORTS:
            name = f"b{os.getpid() % 100000}{port}"
            ip(f"link add {name} type veth peer name {name}s")
            stack.callback(ip, f"link del {name}")
            for end in (name, f"{name}s"):
                Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
                ip(f"link set {end} up mtu 9000")
            ends.append(f"{port}@{name}s")
            sockets[port] = stack.enter_context(open_interface(name))
        yield ends, sockets


@contextmanager
def bmv2(ends: list[str], folder: Path) -> Iterator[Any]:
    """Run simple_switch_grpc; yield a stub with a controller that is primary."""
    address = f"unix:{folder}/grpc"
    interfaces = [word for end in ends for word in ("-i", end)]
    options = ["--no-p4", "--device-id", "1", "--thrift-port", "19091", "-L", "off", *interfaces]
    target = ["--", "--grpc-server-addr", address, "--cpu-port", str(CPU_PORT)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen([BMV2, *options, *target], stdout=quiet, stderr=quiet) as process:
        requests: Queue[Any] = Queue()
        channel = grpc.insecure_channel(address)
        try:
            grpc.channel_ready_future(channel).result(WAIT_S)
            stub = p4runtime_pb2_grpc.P4RuntimeStub(channel)
            hello = p4.StreamMessageRequest()
            hello.arbitration.device_id, hello.arbitration.election_id.low = 1, 1
            requests.put(hello)
            responses = stub.StreamChannel(iter(requests.get, None))
            next(responses)
            yield stub
        finally:
            requests.put(None)
            channel.close()
            process.terminate()


def entries_of(service: P4RuntimeService, info: Any) -> Iterator[tuple[int, p4.Entity]]:
    """Yield the updates that give another switch the tables of ours."""
    request = p4.ReadRequest(device_id=1)
    request.entities.add().table_entry.SetInParent()
    for response in service.read(request):
        yield from (
            (p4.Update.INSERT, entity)
            for entity in response.entities
            if not entity.table_entry.is_const
        )

    for table in info.tables:
        if table.const_default_action_id:
            continue
        (
            request.entities[0].table_entry.table_id,
            request.entities[0].table_entry.is_default_action,
        ) = table.preamble.id, True
        for response in service.read(request):
            yield from (
                (p4.Update.MODIFY, entity)
                for entity in response.entities
                if entity.table_entry.HasField("action")
            )


def program(stub: Any, service: P4RuntimeService, compiled: Any) -> None:
    """Give the switch behind the stub the program and the entries of ours."""
    config = p4.SetForwardingPipelineConfigRequest(
        device_id=1, action=p4.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
    )
    config.election_id.low = 1
    config.config.p4info.CopyFrom(compiled.p4info)
    config.config.p4_device_config = json.dumps(compiled.json).encode()
    stub.SetForwardingPipelineConfig(config, timeout=WAIT_S)
    request = p4.WriteRequest(device_id=1)
    request.election_id.low = 1
    for kind, entity in entries_of(service, compiled.p4info):
        request.updates.add(type=kind, entity=entity)

    stub.Write(request, timeout=WAIT_S)


def ours(switch: Switch, packets: list[tuple[int, bytes]]) -> Sent:
    """Return the frames that our switch sends, by port."""
    sent: Sent = {port: [] for port in PORTS}
    for port, frame in packets:
        for pending in switch.ingress(port, frame):
            for out in switch.egress(pending):
                sent[out.port].append(out.frame)

    return sent


def theirs(
    sockets: dict[int, socket.socket], packets: list[tuple[int, bytes]], expected: int
) -> Sent:
    """Send few packets at a time to the switch on the wires, to lose none; return its frames."""
    sent: Sent = {port: [] for port in PORTS}
    for start in range(0, len(packets), BATCH):
        batch = packets[start : start + BATCH]
        for port, frame in batch:
            sockets[port].send(frame)
        collect(sockets, sent, 0.002 if batch[0][0] == packets[start - 1][0] == batch[-1][0] else 1)

    deadline = time.monotonic() + WAIT_S
    while sum(map(len, sent.values())) < expected and time.monotonic() < deadline:
        collect(sockets, sent, 0.05)

    collect(sockets, sent, 0.2)

    return sent


def collect(sockets: dict[int, socket.socket], sent: Sent, wait_s: float) -> None:
    """Take the frames that have arrived, until none comes for a while."""
    ports = {sock: port for port, sock in sockets.items()}
    while readable := select.select(list(ports), [], [], wait_s)[0]:
        for sock in readable:
            sent[ports[sock]].extend(receive(sock))


def counted(sent: Sent, is_free: bool) -> Counter[tuple[str, bytes]]:
    """Count how often each frame has left through each port.

    The uplinks are a single port where the choice is free.
    """
    names = {port: "up" if is_free and port in UPLINKS else str(port) for port in PORTS}
    return Counter((names[port], frame) for port, frames in sent.items() for frame in frames)


@pytest.mark.parametrize("name", PROGRAMS)
def test_ten_thousand_packets_leave_alike(name: str, tmp_path: Path) -> None:
    switch, service, compiled = served(name)
    valid = valid_packets(FatTree(4))
    every = [*valid, *truncations(valid), *damaged(valid, 2 * COUNT, random.Random(name))]
    packets = [(port, frame) for port, frame in every if port in PORTS and len(frame) >= SHORTEST][
        :COUNT
    ]
    # BMv2 keeps the order of one port's packets, not that of several; pointers depend on it.
    packets.sort(key=lambda packet: packet[0])
    expected = ours(switch, packets)

    assert sum(map(len, expected.values())) > COUNT // 4

    for _ in range(ATTEMPTS):
        with wires() as (ends, sockets), bmv2(ends, tmp_path) as stub:
            program(stub, service, compiled)
            actual = theirs(sockets, packets, sum(map(len, expected.values())))
        if sum(map(len, actual.values())) == sum(map(len, expected.values())):
            break

    is_free = name in FREE_CHOICE

    assert counted(actual, is_free) == counted(expected, is_free)
