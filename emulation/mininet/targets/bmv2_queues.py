"""The rates and depths of BMv2's queues, which are set over Thrift.

Its rates are packets per second per queue, so ACKs have a queue of their own, which is faster by as
much as they are shorter. Thrift's binary protocol is spoken here: two calls need no generated
stubs, and the tool that comes with BMv2 takes a second of processor time per switch.
"""

import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fattree.experiment.model import Scenario
from fattree.shape.topology import LinkEnd
from fattree.units import PS_PER_SECOND

FIRST_THRIFT_PORT = 9090
DATA_QUEUE = 0
ACK_QUEUE = 1
# Stands for no limit: BMv2 knows depths only.
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

        # Fields are (type, number, value), with the numbers of BMv2's simple_switch.thrift, where a
        # rate is an i64 and a depth an i32.
        kind, form = (I64, "q") if self.method.endswith("_rate") else (I32, "i")
        fields = struct.pack(
            f">bhi bhi bh{form} b", I32, 1, self.port, I32, 2, self.queue, kind, 3, self.value, STOP
        )

        # The sequence number is 0: there is one call at a time.
        return struct.pack(">Ii", CALL, len(name)) + name + struct.pack(">i", 0) + fields


def listens(switch: int) -> bool:
    """Return whether a switch takes calls over Thrift, which it does after P4Runtime's."""
    try:
        socket.create_connection(_endpoint(switch), ANSWER_SECONDS).close()
    except OSError:
        return False

    return True


def _endpoint(switch: int) -> tuple[str, int]:
    return "127.0.0.1", FIRST_THRIFT_PORT + switch


def set_queues(scenario: Scenario, switch: int) -> None:
    """Give the ports of a running switch the scenario's rates and depths; raises OSError."""
    _set(switch, queue_settings(scenario, switch))


def set_rate(scenario: Scenario, _folder: Path, end: LinkEnd, share: float) -> None:
    """Let a port of a running switch send at a share of its rate; raises OSError."""
    _set(end.switch, rate_settings(scenario, *end, share))


def _set(switch: int, settings: Iterable[Setting]) -> None:
    with socket.create_connection(_endpoint(switch), ANSWER_SECONDS) as channel:
        for setting in settings:
            channel.sendall(setting.call())
            _refuse_failure(setting, channel.recv(4096))


def _refuse_failure(setting: Setting, answer: bytes) -> None:
    if answer[:4] != struct.pack(">I", REPLY):
        call = f"{setting.method}({setting.port}, {setting.queue}, {setting.value})"
        raise OSError(f"{call} is answered {answer[4:].hex() or 'by silence'}")


def queue_settings(scenario: Scenario, switch: int) -> Iterator[Setting]:
    """Yield how many packets a second leave each queue of a switch, and how many each holds."""
    for port in scenario.tree.ports(switch):
        rates = rate_settings(scenario, switch, port)
        for rate, (queue, packet_bytes) in zip(rates, _sizes(scenario), strict=True):
            depth = scenario.fabric.queue_bytes // packet_bytes or UNLIMITED_PACKETS
            yield rate
            yield Setting("set_egress_priority_queue_depth", port, queue, depth)


def rate_settings(
    scenario: Scenario, switch: int, port: int, share: float = 1
) -> Iterator[Setting]:
    """Yield how many packets a second leave each queue of a port at a share of its rate."""
    level = scenario.tree.level_of(switch, port)
    for queue, packet_bytes in _sizes(scenario):
        slot_ps = scenario.tx_ps(packet_bytes + scenario.packets.gap_bytes, level, share)
        rate = max(1, round(PS_PER_SECOND / slot_ps))
        yield Setting("set_egress_priority_queue_rate", port, queue, rate)


def _sizes(scenario: Scenario) -> tuple[tuple[int, int], ...]:
    """Return the queues with the bytes of their packets."""
    return (DATA_QUEUE, scenario.data_bytes), (ACK_QUEUE, scenario.ack_bytes)
