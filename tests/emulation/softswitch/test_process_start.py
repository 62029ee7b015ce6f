"""The daemon from outside: ready line, signals, exit status, statistics."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

WAIT_S = 60
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start switches and end those that a test leaves behind."""
    running: list[subprocess.Popen[str]] = []

    def run(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "ofan_p4.softswitch.daemon.process", *arguments]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        running.append(process)

        return process

    yield run
    for process in running:
        process.kill()
        process.communicate()


def ready(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.fixture
def json_file(program: Any, tmp_path: Path) -> str:
    program.state("start")
    path = tmp_path / "program.json"
    path.write_bytes(program.source())

    return str(path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_when_it_is_ready_and_ends_on_a_signal(
    start: Start, json_file: str, number: int
) -> None:
    process = start(json_file, "--device-id", "5", "--", "--grpc-server-addr", "127.0.0.1:0")

    assert ready(process).startswith("softswitch: device 5 ready on 127.0.0.1:")

    process.send_signal(number)

    assert process.wait(WAIT_S) == 0
    assert process.communicate()[1] == ""


def failure(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = process.communicate(timeout=WAIT_S)
    assert errors.count("\n") == 1
    return process.returncode, errors


def test_a_taken_port_is_one_line(start: Start) -> None:
    first = start("--no-p4", "--grpc-server-addr", "127.0.0.1:0")
    address = ready(first).split()[5].rstrip(",")
    status, line = failure(start("--no-p4", "--grpc-server-addr", address))

    assert (status, "already in use" in line, address in line) == (1, True, True)


def test_a_corrupt_program_is_one_line(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{"header_types": [], "pipelines": []}')
    status, line = failure(start(str(path)))

    assert (status, "BMv2 JSON" in line) == (2, True)


def test_an_interface_that_cannot_be_opened_is_one_line(start: Start) -> None:
    status, line = failure(start("--no-p4", "-i", "1@no-such-if"))
    assert (status, "no-such-if" in line) == (1, True)


def test_statistics_are_json_for_the_owner_only(
    start: Start, json_file: str, tmp_path: Path
) -> None:
    path = tmp_path / "stats"
    process = start(json_file, "--stats-socket", str(path), "--grpc-server-addr", "127.0.0.1:0")
    ready(process)

    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600

    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(WAIT_S)
        peer.connect(str(path))
        answer = json.loads(peer.makefile().read())

    assert (answer["device_id"], answer["has_pipeline"], answer["ports"]) == (0, True, {})
    assert answer["counts"]["received"] == 0

    status, line = failure(
        start(json_file, "--stats-socket", str(path), "--grpc-server-addr", "127.0.0.1:0")
    )

    assert (status, "another process" in line) == (1, True)

    process.terminate()
    process.wait(WAIT_S)

    assert not path.exists()
