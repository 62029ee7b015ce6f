"""Switch processes on veth pairs, in a network namespace, and a window of frames through them."""

import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import click
import grpc

# isort: split
from p4.v1 import p4runtime_pb2_grpc

from benchmarks.rates.programs import CPU, HERE, hello

OURS = "softswitch"
BMV2 = "simple_switch_grpc"
WINDOW = 30
TICKS = os.sysconf("SC_CLK_TCK")
# Linux's numbers, which Python's socket module lacks: SOL_PACKET, PACKET_IGNORE_OUTGOING, and
# SO_RCVBUFFORCE and SO_SNDBUFFORCE, which go beyond the system's limit.
IGNORE_OUTGOING = (263, 23, 1)
BUFFER_FORCED = {"receive": 33, "send": 32}
WAIT_S = 20


def ip(line: str) -> None:
    """Run `ip`."""
    subprocess.run(["ip", *line.split()], check=True)


@contextmanager
def veths(mtu: int = 9000) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Make two veth pairs, i0 and i1, with the ends s1 and s2 for the switch.

    Yield sockets on the others.
    """
    with ExitStack() as stack:
        sockets = []
        for number, name in enumerate(("i0", "i1"), 1):
            ip(f"link add {name} type veth peer name s{number}")
            stack.callback(ip, f"link del {name}")
            for end in (name, f"s{number}"):
                Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
                ip(f"link set {end} up mtu {mtu}")

            sock = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
            sock.setsockopt(*IGNORE_OUTGOING)
            for option in BUFFER_FORCED.values():
                sock.setsockopt(socket.SOL_SOCKET, option, 16 << 20)

            sock.bind((name, 3))
            sock.setblocking(False)
            sockets.append(sock)

        yield sockets[0], sockets[1]


@contextmanager
def running(kind: str, folder: Path) -> Iterator[tuple[int, Any]]:
    """Run a switch on s1 and s2.

    Yield its process id and a P4Runtime stub whose controller is primary.
    """
    address = f"unix:{folder / kind}.grpc"
    program = (
        [sys.executable, "-m", "ofan_p4.softswitch.daemon.process"]
        if kind == OURS
        else [BMV2, "--thrift-port", "19090", "-L", "off"]
    )

    options = [
        "--no-p4",
        "--device-id",
        "1",
        "-i",
        "1@s1",
        "-i",
        "2@s2",
        "--",
        "--grpc-server-addr",
        address,
        "--cpu-port",
        str(CPU),
    ]

    quiet = subprocess.DEVNULL
    command = [*program, *options]
    with subprocess.Popen(command, cwd=HERE.parent, stdout=quiet, stderr=quiet) as process:
        requests: Queue[Any] = Queue()
        channel = grpc.insecure_channel(address)
        try:
            stub = p4runtime_pb2_grpc.P4RuntimeStub(channel)
            grpc.channel_ready_future(channel).result(WAIT_S)
            requests.put(hello())
            responses = stub.StreamChannel(iter(requests.get, None))
            next(responses)
            yield process.pid, stub
        finally:
            requests.put(None)
            channel.close()
            process.terminate()


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def through(
    ends: tuple[socket.socket, socket.socket], frames: list[bytes], seconds: float
) -> tuple[int, int]:
    """Keep a window of frames under way for so long.

    Return how many have come through and how many were lost.
    """
    sender, receiver = ends
    sent = received = 0
    deadline = time.monotonic() + seconds

    while time.monotonic() < deadline:
        for _ in range(min(64, WINDOW - (sent - received))):
            try:
                sender.send(frames[sent % len(frames)])
            except OSError:
                break

            sent += 1

        received += drained(receiver, 0 if sent - received < WINDOW else 0.2)

    while received < sent and (more := drained(receiver, 1)):
        received += more

    return received, sent - received


def drained(receiver: socket.socket, wait_s: float) -> int:
    """Return how many frames have arrived, after waiting for the first."""
    if wait_s and not select.select([receiver], [], [], wait_s)[0]:
        return 0

    count = 0
    try:
        while count < WINDOW:
            receiver.recv(2048)
            count += 1
    except BlockingIOError:
        pass

    return count


def enter_namespace(module: str = "") -> None:
    """Start again in a network namespace that ends with this process."""
    if os.geteuid() != 0:
        raise click.ClickException(
            "--veth needs root: it makes interfaces, in a network namespace of its own"
        )

    script = ["-m", module, *sys.argv[1:]] if module else sys.argv
    os.execvp("unshare", ["unshare", "--net", sys.executable, *script, "--inside"])
