"""Language cases on BMv2's own simple_switch_grpc: capture files in, its command line besides.

Capture files carry frames of any length, which interfaces do not; the input of a port is a pipe, so
that commands can come between packets.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import IO, Any

from ofan_p4.softswitch.state.tables import needs_priority
from ofan_p4.stf.bench import Bench
from ofan_p4.stf.script import Add, CheckCounter, Command, Expect, Packet, Remove, SetDefault

SWITCH = "simple_switch_grpc"
COMMAND_LINE = "simple_switch_CLI"
CAPTURE_HEAD = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
PROMPT = "RuntimeCmd: "
START_S = 20.0
ANSWER_S = 20.0
QUIET_S = 1.0
LOWEST_PRIORITY = 10_000
PASSED_ON = (
    "mirroring_add",
    "mirroring_add_mc",
    "mc_mgrp_create",
    "mc_node_create",
    "mc_node_associate",
)
ARRAYS = ("register_write", "register_reset", "meter_set_rates")
LOOKED_AT = ("register_read", "counter_read", "expect_log", "expect_digest", "no_packet")


class Unsupported(Exception):
    """A command that BMv2's command line lacks; the message names it."""


def missing() -> str | None:
    """Return which program this machine lacks."""
    return next(
        (
            f"{name} is not on the PATH"
            for name in (SWITCH, COMMAND_LINE)
            if shutil.which(name) is None
        ),
        None,
    )


def translated(bench: Bench, command: Command) -> str | float | None:
    """Return a command for BMv2's command line, the seconds to wait, or None for nothing to do."""
    match command:
        case Packet() | Expect() | CheckCounter():
            return None
        case Add():
            return _table_add(bench, command)
        case SetDefault(line, table, call):
            target_table = bench.table(line, table)
            action, data = bench.choice(line, target_table, call)
            name = bench.pipeline.program.actions[action].name
            return f"table_set_default {target_table.spec.name} {name} {' '.join(map(str, data))}"
        case Remove():
            raise Unsupported("remove")

    if command.word == "wait":
        return 1.1
    if command.word in LOOKED_AT:
        return None
    if command.word in PASSED_ON:
        return " ".join((command.word, *command.arguments))
    if command.word not in ARRAYS:
        raise Unsupported(command.word)

    arrays = (*bench.pipeline.program.registers, *bench.pipeline.program.meters)
    name = next(array.name for array in arrays if array.name.endswith(command.arguments[0]))
    values = [str(int(text, 0)) if ":" not in text else text for text in command.arguments[1:]]

    return " ".join((command.word, name, *values))


def _table_add(bench: Bench, command: Add) -> str:
    table = bench.table(command.line, command.table)
    if table.spec.profile is not None:
        raise Unsupported("add to an action profile")

    match = bench.match(command.line, table, command.keys)
    keys = [_key(key.kind, *pair) for key, pair in zip(table.spec.key, match, strict=True)]
    action, data = bench.choice(command.line, table, command.calls[0])
    name = bench.pipeline.program.actions[action].name
    priority = (
        [str(LOWEST_PRIORITY - (command.priority or 0))] if needs_priority(table.spec) else []
    )

    return " ".join(["table_add", table.spec.name, name, *keys, "=>", *map(str, data), *priority])


def _key(kind: str, first: int, second: int) -> str:
    return {
        "exact": f"{first:#x}",
        "lpm": f"{first:#x}/{second}",
        "range": f"{first:#x}->{second:#x}",
    }.get(kind, f"{first:#x}&&&{second:#x}")


class Bmv2Bench:
    """A running BMv2 with a program, and the pipes of the ports that receive."""

    def __init__(
        self, folder: Path, pipes: dict[int, IO[bytes]], commands: subprocess.Popen[bytes]
    ) -> None:
        self._folder = folder
        self._pipes = pipes
        self._commands = commands
        self._said = self._sent = 0

    def say(self, text: str) -> None:
        """Do a command and wait until it is done."""
        assert self._commands.stdin is not None
        self._commands.stdin.write(f"{text}\n".encode())
        self._commands.stdin.flush()
        self._said += 1
        deadline = time.monotonic() + ANSWER_S
        while (self._folder / "said").read_text().count(PROMPT) <= self._said:
            assert time.monotonic() < deadline, f"no answer to {text}"
            time.sleep(0.05)

    def send(self, port: int, frame: bytes) -> None:
        """Let a frame arrive."""
        self._sent += 1
        self._pipes[port].write(struct.pack("<IIII", self._sent, 0, len(frame), len(frame)) + frame)
        time.sleep(0.05)

    def answers(self) -> str:
        """Return the output of the command line so far."""
        return (self._folder / "said").read_text()


@contextmanager
def bmv2(
    folder: Path,
    program: dict[str, Any],
    thrift_port: int,
    inputs: Sequence[int],
    ports: Sequence[int],
) -> Iterator[Bmv2Bench]:
    """Run BMv2 in a folder, with `inputs` among `ports`.

    When the body ends, all inputs are over and processed.
    """
    with ExitStack() as stack:
        switch, pipes = stack.enter_context(
            started(folder, program, thrift_port, inputs=inputs, ports=ports)
        )
        said = stack.enter_context((folder / "said").open("w"))
        time.sleep(QUIET_S)
        line = [
            "/usr/bin/python3",
            "-u",
            str(shutil.which(COMMAND_LINE)),
            "--thrift-port",
            str(thrift_port),
        ]
        commands = stack.enter_context(
            subprocess.Popen(line, stdin=subprocess.PIPE, stdout=said, stderr=said)
        )
        stack.callback(commands.kill)
        yield Bmv2Bench(folder, pipes, commands)
        close(pipes)
        time.sleep(QUIET_S)
        _alive(folder, switch)


@contextmanager
def started(
    folder: Path,
    program: dict[str, Any],
    thrift_port: int,
    inputs: Sequence[int],
    ports: Sequence[int],
) -> Iterator[tuple[subprocess.Popen[bytes], dict[int, IO[bytes]]]]:
    """Run BMv2 without a command line; yield its process and the pipes of the inputs."""
    (folder / "program.json").write_text(json.dumps(program))
    for port in ports:
        if port in inputs:
            os.mkfifo(folder / f"{port}_in.pcap")
        else:
            (folder / f"{port}_in.pcap").write_bytes(CAPTURE_HEAD)

    general = [
        "--use-files",
        "0",
        "--device-id",
        str(thrift_port),
        "--thrift-port",
        str(thrift_port),
        "-L",
        "off",
    ]
    interfaces = [word for port in ports for word in ("-i", f"{port}@{folder}/{port}")]
    target = ["--", "--grpc-server-addr", f"unix:{folder}/grpc", "--priority-queues", "8"]

    with (folder / "log").open("w") as log:
        switch = subprocess.Popen(
            [SWITCH, *general, *interfaces, str(folder / "program.json"), *target],
            stdout=log,
            stderr=log,
        )
        try:
            pipes = _opened(folder, inputs, switch)
            try:
                yield switch, pipes
            finally:
                close(pipes)
        finally:
            _end(switch)


def _alive(folder: Path, switch: subprocess.Popen[bytes]) -> None:
    assert switch.poll() is None, (
        f"BMv2 ended with {switch.returncode}: {(folder / 'log').read_text()[-300:]}"
    )


def _opened(
    folder: Path, inputs: Sequence[int], switch: subprocess.Popen[bytes]
) -> dict[int, IO[bytes]]:
    """Open the pipes in the order in which BMv2 does: it waits at each for the other end."""
    pipes: dict[int, IO[bytes]] = {}

    def open_all() -> None:
        for port in inputs:
            pipes[port] = (folder / f"{port}_in.pcap").open("wb", buffering=0)
            pipes[port].write(CAPTURE_HEAD)

    thread = Thread(target=open_all, daemon=True)
    thread.start()
    thread.join(START_S)

    assert not thread.is_alive(), f"BMv2 does not start: {(folder / 'log').read_text()[:300]}"
    assert switch.poll() is None

    return pipes


def close(pipes: dict[int, IO[bytes]]) -> None:
    for pipe in pipes.values():
        pipe.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def captured(path: Path) -> list[bytes]:
    """Return the frames of a capture file."""
    data = path.read_bytes() if path.exists() else b""
    frames = []
    offset = len(CAPTURE_HEAD)
    while offset + 16 <= len(data):
        length = struct.unpack_from("<I", data, offset + 8)[0]
        frames.append(data[offset + 16 : offset + 16 + length])
        offset += 16 + length

    return frames


def run(
    folder: Path, program: dict[str, Any], commands: Sequence[Command], thrift_port: int
) -> dict[int, list[bytes]]:
    """Do a script and return the frames that left through each port; raises Unsupported."""
    bench = Bench(program)
    plan = [(command, translated(bench, command)) for command in commands]
    inputs = sorted({command.port for command in commands if isinstance(command, Packet)})
    ports = sorted({command.port for command in commands if isinstance(command, Packet | Expect)})

    with bmv2(folder, program, thrift_port, inputs, ports) as switch:
        for command, text in plan:
            if isinstance(command, Packet):
                switch.send(command.port, command.frame)
            elif isinstance(text, str):
                switch.say(text)
            elif text is not None:
                time.sleep(text)

        assert "Error" not in switch.answers() and "Invalid" not in switch.answers(), (
            switch.answers()
        )

    return {port: frames for port in ports if (frames := captured(folder / f"{port}_out.pcap"))}


def forwarded(
    folder: Path,
    program: dict[str, Any],
    arrivals: Sequence[tuple[int, bytes]],
    ports: Sequence[int],
    thrift_port: int,
) -> dict[int, list[bytes]]:
    """Send packets through BMv2 without commands; return the frames that left through each port."""
    inputs = sorted({port for port, _ in arrivals})
    every = sorted({*inputs, *ports})
    with started(folder, program, thrift_port, inputs=inputs, ports=every) as (switch, pipes):
        time.sleep(QUIET_S)
        for number, (port, frame) in enumerate(arrivals, 1):
            head = struct.pack("<IIII", number, 0, len(frame), len(frame))
            pipes[port].write(head + frame)
            # One packet after the other, as ingress of the next would overtake egress.
            time.sleep(0.02)

        close(pipes)
        time.sleep(QUIET_S)
        _alive(folder, switch)

    return {port: captured(folder / f"{port}_out.pcap") for port in every}
