"""BMv2 in the place of our switch: a process, a veth pair a port, P4Runtime on a Unix socket.

It refuses registers through P4Runtime, so they are read and written over Thrift. It cannot hold a
queue still, lie about a packet's length or take its random numbers from a test: tests that need any
of these are skipped, with that as the reason.
"""

import json
import os
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from controller.grpc_transport import GrpcTransport
from controller.session import Session
from emulation.mininet.kernel import ip_batch
from emulation.mininet.targets.bmv2 import PROGRAM as BMV2
from emulation.mininet.targets.bmv2_queues import FIRST_THRIFT_PORT

IS_WANTED = os.environ.get("OFAN_TEST_SWITCH") == "bmv2"
PACKET_IGNORE_OUTGOING = 23
ETH_P_ALL = 3
START_SECONDS = 20.0
# A packet that has not come out was dropped if BMv2's threads have slept for so long. On a busy
# machine a thread with a packet waits for a processor, and does not sleep.
IDLE_SECONDS = 0.2
LOOKS = 10
BUSY_SECONDS = 60.0
CPU_PORT = 510
_numbers = count()


def why_not() -> str | None:
    """Return why this machine cannot test BMv2, None where it can."""
    if shutil.which(BMV2) is None:
        return f"{BMV2} is not on PATH"
    return None if os.geteuid() == 0 else "veth pairs need root"


@dataclass(frozen=True, slots=True)
class Arrived:
    """A packet that has left BMv2 already."""

    egress_port: int
    frame: bytes


class Thrift:
    """Two calls of BMv2's runtime over Thrift's binary protocol."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    def read(self, register: str) -> list[int]:
        """Return all cells of a register array."""
        answer = self._call("bm_register_read_all", register, b"")
        assert answer[:3] == b"\x0f\x00\x00", f"{register}: {answer.hex()}"
        (count_,) = struct.unpack_from(">i", answer, 4)
        return list(struct.unpack_from(f">{count_}q", answer, 8))

    def write(self, register: str, index: int, value: int) -> None:
        """Set a cell."""
        answer = self._call(
            "bm_register_write", register, struct.pack(">bhi bhq", 8, 3, index, 10, 4, value)
        )
        assert answer == b"\0", f"{register}: {answer.hex()}"

    def _call(self, method: str, register: str, rest: bytes) -> bytes:
        name, array = f"standard:{method}".encode(), register.encode()
        head = struct.pack(">Ii", 0x80010001, len(name)) + name + bytes(4)
        self._channel.sendall(
            head + struct.pack(">bhi bhi", 8, 1, 0, 11, 2, len(array)) + array + rest + b"\0"
        )
        self._received(12 + len(name) - len("standard:"))
        return self._result()

    def _result(self) -> bytes:
        """Return a result structure: nothing, or one list of i64."""
        answer = self._received(1)
        if answer == b"\x0f":
            answer += self._received(7)
            answer += self._received(8 * int.from_bytes(answer[4:], "big") + 1)
        return answer

    def _received(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            data += self._channel.recv(count - len(data))
        return data

    def close(self) -> None:
        """Hang up."""
        self._channel.close()


class Cells(list[int]):
    """A register array as it was when it was asked for.

    Setting a part of it makes BMv2's the same.
    """

    def __init__(self, thrift: Thrift, name: str) -> None:
        super().__init__(thrift.read(name))
        self._thrift, self._name = thrift, name

    def __setitem__(self, where: Any, value: Any) -> None:
        super().__setitem__(where, value)
        for index, (cell, stored) in enumerate(
            zip(self, self._thrift.read(self._name), strict=True)
        ):
            if cell != stored:
                self._thrift.write(self._name, index, cell)


class Bmv2Session(Session):
    """A session with BMv2 that reads registers over Thrift."""

    thrift: Thrift
    names: list[str]

    def read_register(self, name: str, index: int | None = None) -> list[int]:
        """Return the cells of a register array, or a single cell."""
        cells = self.thrift.read(
            next(full for full in self.names if full.rpartition(".")[2] == name)
        )
        return cells if index is None else [cells[index]]


class Bmv2Switch:
    """A running BMv2 with empty tables; `ingress` sends a frame and returns the outgoing frames."""

    def __init__(self, device_id: int, ports: Sequence[int]) -> None:
        self.number = next(_numbers)
        self._folder = tempfile.mkdtemp(prefix="bmv2-")
        self.address = f"unix:{self._folder}/grpc"
        near = {port: f"n{self.number}-{port}" for port in ports}
        far = {port: f"f{self.number}-{port}" for port in ports}
        ip_batch(f"link add {near[port]} type veth peer name {far[port]}" for port in ports)
        ip_batch(f"link set {name} up" for names in (near, far) for name in names.values())
        interfaces = [word for port in ports for word in ("-i", f"{port}@{near[port]}")]
        target = ["--grpc-server-addr", self.address, "--cpu-port", str(CPU_PORT)]
        log = [
            "--log-file",
            f"{self._folder}/log",
            "-L",
            "error",
            "--thrift-port",
            str(FIRST_THRIFT_PORT + self.number),
        ]
        command = [BMV2, "--no-p4", "--device-id", str(device_id), *log, *interfaces, "--", *target]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._ends = {_packet_socket(far[port]): port for port in ports}
        self._ports = {port: end for end, port in self._ends.items()}
        self.end = weakref.finalize(
            self, _end, self._process, self._folder, list(self._ends), list(near.values())
        )
        self._await()
        self.thrift = Thrift(self._dialled(FIRST_THRIFT_PORT + self.number))
        self.names: list[str] = []

    @property
    def pipeline(self) -> Any:
        """Return the values that a test may set: the register arrays, in the program's order."""
        return SimpleNamespace(registers=[Cells(self.thrift, name) for name in self.names])

    @property
    def counts(self) -> Any:
        """Skip a test that asks the switch for the fate of a packet."""
        pytest.skip("BMv2 counts no drops")

    def _await(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        with socket.socket(socket.AF_UNIX) as probe:
            while probe.connect_ex(f"{self._folder}/grpc"):
                assert self._process.poll() is None, (
                    f"BMv2 ended with code {self._process.returncode}"
                )
                assert time.monotonic() < deadline, "BMv2 does not listen"
                time.sleep(0.02)

    def _dialled(self, port: int) -> socket.socket:
        deadline = time.monotonic() + START_SECONDS
        channel = socket.socket()
        while channel.connect_ex(("127.0.0.1", port)):
            channel.close()
            assert time.monotonic() < deadline, "BMv2 does not listen to Thrift"
            time.sleep(0.02)
            channel = socket.socket()
        return channel

    def ingress(self, port: int, frame: bytes, length: int | None = None) -> list[Arrived]:
        """Send a frame to a port; return the packets that came out, an empty list without any."""
        if length is not None and length != len(frame):
            pytest.skip("BMv2 sees the true length of a packet")
        if len(frame) < 14:
            return []  # The kernel carries no frame that is shorter than an Ethernet header.
        self._ports[port].send(frame)
        return self.received()

    def received(self) -> list[Arrived]:
        """Return the packets that have come out since the last call."""
        arrived: list[Arrived] = []
        deadline = time.monotonic() + BUSY_SECONDS
        idle = 0
        while idle < LOOKS and not arrived:
            assert time.monotonic() < deadline, "BMv2 is busy, and sends nothing"
            arrived = self._ready(IDLE_SECONDS / LOOKS)
            idle = 0 if self._is_busy() else idle + 1
        while more := self._ready(0):
            arrived += more
        return arrived

    def _ready(self, seconds: float) -> list[Arrived]:
        ready, _, _ = select.select(list(self._ends), [], [], seconds)
        return [Arrived(self._ends[end], end.recv(1 << 16)) for end in ready]

    def _is_busy(self) -> bool:
        """Return whether a thread of BMv2 runs, or could run."""
        for stat in Path(f"/proc/{self._process.pid}/task").glob("*/stat"):
            # The state follows the name, which stands in brackets.
            with suppress(FileNotFoundError, ProcessLookupError):
                if stat.read_text().rpartition(") ")[2][:1] != "S":
                    return True

        return False

    def egress(self, pending: Arrived, behind: int = 0) -> list[Any]:
        """Return the packet that has left, in a list."""
        return [SimpleNamespace(port=pending.egress_port, frame=pending.frame)]

    def take_requeued(self) -> list[Arrived]:
        """Return the packets that the controller has sent out."""
        return self.received()


def _packet_socket(interface: str) -> socket.socket:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    end.setsockopt(263, PACKET_IGNORE_OUTGOING, 1)
    end.bind((interface, ETH_P_ALL))
    return end


def _end(
    process: subprocess.Popen[bytes], folder: str, ends: list[socket.socket], interfaces: list[str]
) -> None:
    process.kill()
    process.wait()
    for end in ends:
        end.close()
    with suppress(Exception):
        ip_batch(f"link del {name}" for name in interfaces)
    shutil.rmtree(Path(folder), ignore_errors=True)


def connect(switch: Bmv2Switch, config: bytes, pipeline: Any, device_id: int, name: str) -> Session:
    """Return a session with a BMv2 switch that runs a program; it ends with the switch."""
    transport = GrpcTransport(switch.address)
    session = Bmv2Session(transport, pipeline, device_id, name)
    session.thrift = switch.thrift
    switch.names = session.names = [
        array["name"] for array in json.loads(config)["register_arrays"]
    ]
    session.open()
    session.push(config)
    weakref.finalize(switch, transport.close)
    weakref.finalize(switch, switch.thrift.close)
    return session
