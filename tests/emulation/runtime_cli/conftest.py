"""Switches with the runtime API, and scripts for `simple_switch_CLI` to run on them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ofan_p4.compiler import compile_file
from ofan_p4.softswitch.daemon.thrift.rpc import Client

WAIT_S = 60
HERE = Path(__file__).parent


def script(port: int, *lines: str) -> tuple[int, list[str]]:
    """Run commands as from a file; return the exit status, and each command's output."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "ofan_p4.runtime_cli.cli",
            "--thrift-ip",
            "127.0.0.1",
            "--thrift-port",
            str(port),
        ],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert done.stderr == ""
    return done.returncode, [text.strip() for text in done.stdout.split("RuntimeCmd: ")[1:-1]]


class Running:
    """A switch process with its runtime API's port."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.port = port

    def script(self, *lines: str) -> tuple[int, list[str]]:
        """Run commands as from a file; return the exit status, and each command's output."""
        return script(self.port, *lines)

    def client(self) -> Client:
        """A connection of one's own."""
        return Client("127.0.0.1", self.port)


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("everything") / "everything.json"
    path.write_text(json.dumps(compile_file(HERE / "everything.p4").json))
    return path


@contextmanager
def switch(program: Path, *arguments: str) -> Iterator[Running]:
    command = [sys.executable, "-m", "ofan_p4.softswitch.daemon.process", str(program)]
    command += ["--thrift-port", "0", "--grpc-server-addr", "127.0.0.1:0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "runtime API on 127.0.0.1:" in line
        assert "ready" in process.stdout.readline()
        try:
            yield Running(process, int(line.rpartition(":")[2]))
        finally:
            process.kill()


@pytest.fixture
def running(program: Path) -> Iterator[Running]:
    with switch(program) as running_switch:
        yield running_switch


@pytest.fixture(scope="module")
def refusing(program: Path) -> Iterator[Running]:
    """A switch that gets only commands that it refuses."""
    with switch(program) as running_switch:
        yield running_switch


@pytest.fixture
def wired(program: Path, hosts: dict[int, socket.socket]) -> Iterator[Running]:
    """A switch with ports 1 and 2 on the hosts' wires."""
    ports = [word for port, sock in hosts.items() for word in ("-i", f"{port}@{name_of(sock)}s")]
    with switch(program, *ports) as running_switch:
        yield running_switch


@pytest.fixture
def hosts() -> Iterator[dict[int, socket.socket]]:
    """Hosts on ports 1 and 2; the switch's end has an `s` behind the name of theirs."""
    with ExitStack() as stack:
        sockets = {}
        for port in (1, 2):
            name = f"r{os.getpid() % 100000}{port}"
            ip(f"link add {name} type veth peer name {name}s")
            stack.callback(ip, f"link del {name}")
            for end in (name, f"{name}s"):
                Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
                ip(f"link set {end} up")

            sock = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
            # Only frames from the switch.
            sock.setsockopt(263, 23, 1)
            sock.bind((name, 3))
            sock.settimeout(WAIT_S)
            sockets[port] = sock

        yield sockets


def name_of(sock: socket.socket) -> str:
    return str(sock.getsockname()[0])


def ip(line: str) -> None:
    subprocess.run(["ip", *line.split()], check=True, capture_output=True)
