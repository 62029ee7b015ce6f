"""BMv2's simple_switch_grpc in the place of our switch: its command line, its queues, and the
reference compiler.

Its rates are packets per second per queue, so ACKs have a queue of their own, which is faster by as
much as they are shorter. Rates and depths are set over Thrift, whose binary protocol is spoken
here: two calls need no generated stubs, and the tool that comes with BMv2 takes a second of
processor time per switch.
"""

import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from emulation.errors import NetworkError
from fattree.experiment import Scenario
from fattree.units import PS_PER_SECOND

BMV2 = "simple_switch_grpc"
FIRST_THRIFT_PORT = 9090
DATA_QUEUE = 0
ACK_QUEUE = 1
UNLIMITED_PACKETS = 1 << 20
ANSWER_SECONDS = 10.0
# Thrift's binary protocol: version 1 and the kinds of messages, the types of fields.
CALL = 0x80010001
REPLY = 0x80010002
STOP = 0
I32 = 8
I64 = 10


@dataclass(frozen=True, slots=True)
class Setting:
    """One queue of one port: how many packets leave it in a second, or how many it holds."""

    method: str
    port: int
    queue: int
    value: int

    def call(self) -> bytes:
        """Return the Thrift call that makes it."""
        name = f"simple_switch:{self.method}".encode()
        kind, form = (I64, "q") if self.method.endswith("_rate") else (I32, "i")
        fields = struct.pack(
            f">bhi bhi bh{form} b", I32, 1, self.port, I32, 2, self.queue, kind, 3, self.value, STOP
        )

        return struct.pack(">Ii", CALL, len(name)) + name + struct.pack(">i", 0) + fields


def command(switch: int, common: Sequence[str]) -> list[str]:
    """Return the command line: `common` are the options that our switch shares, those of the target
    behind `--`.
    """
    general = [
        BMV2,
        "--thrift-port",
        str(FIRST_THRIFT_PORT + switch),
        "--log-console",
        "-L",
        "warn",
    ]

    return [*general, *common, "--priority-queues", "2"]


def refuse_without_bmv2() -> None:
    """Raise NetworkError where BMv2 is missing or does not start."""
    if shutil.which(BMV2) is None:
        raise NetworkError(
            f"{BMV2} is not on PATH: install BMv2 (docs/bmv2.md says how), or use --switch softswitch"
        )

    done = subprocess.run([BMV2, "--version"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NetworkError(
            f"{BMV2} does not start: {' | '.join((done.stderr or done.stdout).strip().splitlines()[:2])}"
        )


def set_queues(scenario: Scenario, switch: int) -> None:
    """Give the ports of a running switch the scenario's rates and depths; raises OSError."""
    with socket.create_connection(
        ("127.0.0.1", FIRST_THRIFT_PORT + switch), ANSWER_SECONDS
    ) as channel:
        for setting in queue_settings(scenario, scenario.tree.ports(switch)):
            channel.sendall(setting.call())
            _refuse_failure(setting, channel.recv(4096))


def _refuse_failure(setting: Setting, answer: bytes) -> None:
    if answer[:4] != struct.pack(">I", REPLY):
        raise OSError(
            f"{setting.method}({setting.port}, {setting.queue}, {setting.value}) is answered {answer[4:].hex() or 'by silence'}"
        )


def queue_settings(scenario: Scenario, ports: Sequence[int]) -> Iterator[Setting]:
    """Yield, for every port, how many packets a second leave each queue, and how many it holds."""
    sizes = {
        DATA_QUEUE: (scenario.slot_ps, scenario.data_bytes),
        ACK_QUEUE: (scenario.ack_slot_ps, scenario.ack_bytes),
    }

    for port in ports:
        for queue, (slot_ps, packet_bytes) in sizes.items():
            depth = scenario.fabric.queue_bytes // packet_bytes or UNLIMITED_PACKETS
            yield Setting(
                "set_egress_priority_queue_rate",
                port,
                queue,
                max(1, round(PS_PER_SECOND / slot_ps)),
            )

            yield Setting("set_egress_priority_queue_depth", port, queue, depth)


def p4c(
    source: Path, includes: Sequence[Path], defines: dict[str, str], folder: Path
) -> tuple[Path, Path]:
    """Compile with the reference compiler; return the JSON and the P4Info (text).

    Raises NetworkError with its words.
    """
    program = shutil.which("p4c-bm2-ss")
    if program is None:
        raise NetworkError(
            "p4c-bm2-ss is not on PATH: install p4c (docs/bmv2.md says how), or leave --compiler p4c out"
        )

    wanted = folder / f"{source.stem}.json", folder / f"{source.stem}.txtpb"
    options = [
        *(f"-I{path}" for path in includes),
        *(f"-D{name}={value}" for name, value in defines.items()),
    ]

    outputs = ["-o", str(wanted[0]), "--p4runtime-files", str(wanted[1])]
    done = subprocess.run(
        [program, "--std", "p4-16", *options, *outputs, str(source)],
        capture_output=True,
        text=True,
        check=False,
    )

    if done.returncode:
        raise NetworkError(
            f"p4c refuses {source}: {' | '.join(done.stderr.strip().splitlines()[:3])}"
        )

    return wanted
