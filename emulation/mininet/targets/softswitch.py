"""Our switch as a process of a Mininet network.

Its command line has all of its settings; it reports its counters on a Unix socket of its own.
"""

import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from emulation.errors import EmulationError
from emulation.mininet.children import SOFTSWITCH_PROGRAM
from emulation.mininet.counters import PortCounters, SwitchCounters
from emulation.mininet.kernel import InterfaceCounts, ip_batch
from emulation.mininet.limits import PAUSED_LATE_PS
from emulation.mininet.targets.target import (
    Target,
    common_options,
    latency_us,
    queue_options,
    rates_socket,
    stats_socket,
)
from emulation.programs.switch_program import Priorities
from fattree.draws import Stream, component, mix
from fattree.experiment.model import Scenario
from fattree.experiment.pauses import is_paused
from fattree.routes.buffers import rooms
from fattree.shape.addressing import switch_name
from fattree.shape.topology import LinkEnd

# The switch has no word for "no limit"; no queue of a run grows to exabytes.
UNLIMITED_BYTES = 2**62
ANSWER_SECONDS = 10.0
# Every Linux has this user, who owns nothing.
USER = "nobody"


def command(scenario: Scenario, switch: int, folder: Path, edge_header_bytes: int) -> list[str]:
    """Return the command line: the scenario's rate, queue, gap and latency."""
    name = switch_name(scenario.tree, switch)
    options = {
        "--gap-bytes": scenario.packets.gap_bytes,
        "--stats-socket": stats_socket(folder, name),
        "--rates-socket": rates_socket(folder, name),
        # Packets, programs and P4Runtime are no work for root.
        "--user": USER,
        # The draws of a switch depend on the experiment's seed and its number alone, so that a run
        # can be had again, and no two switches draw alike.
        "--seed": int(mix(scenario.seed, component(Stream.SWITCH, switch), 0)),
    }

    return [
        SOFTSWITCH_PROGRAM,
        *common_options(scenario, switch, folder),
        *queue_options(priorities(scenario)),
        *(str(word) for pair in options.items() for word in pair),
        *_of_ports(scenario, switch, edge_header_bytes),
    ]


def _of_ports(scenario: Scenario, switch: int, edge_header_bytes: int) -> Iterator[str]:
    """Yield the options of single ports: rates, latencies and buffers are those of their level."""
    watchdog_us = scenario.fabric.pause_watchdog_us
    if watchdog_us is not None:
        action = scenario.fabric.pause_watchdog or "drop"
        yield from ("--pfc-watchdog", f"{round(watchdog_us)}:{action}")

    if not is_paused(scenario):
        yield from ("--queue-bytes", str(scenario.fabric.queue_bytes or UNLIMITED_BYTES))

    thresholds = {}
    if is_paused(scenario):
        thresholds = rooms(scenario, switch, PAUSED_LATE_PS, edge_header_bytes)

    for port in scenario.tree.ports(switch):
        level = scenario.tree.level_of(switch, port)
        yield from ("--rate-bps", f"{port}={scenario.rates_bps[level]}")
        yield from ("--delay-us", f"{port}={latency_us(scenario, level)}")
        if is_paused(scenario):
            yield from ("--pfc", f"{port}={':'.join(map(str, thresholds[port]))}")


def priorities(scenario: Scenario) -> Priorities:
    """Return the queues: probes overtake data, so that a full queue does not look like a dead link.

    ACKs wait with the data: rates are in bits, so that an ACK takes no more than its bytes do.
    """
    return Priorities(control=int(scenario.controller.detection == "probe"))


def need_nothing(_scenario: Scenario) -> None:
    """Need nothing of the machine: the switch comes with us, and delays by itself."""


def read_counters(path: Path, _kernel: Mapping[int, InterfaceCounts]) -> SwitchCounters:
    """Ask a switch for its counters; raises EmulationError where it does not answer."""
    answer = _ask(path)
    ports = {int(port): _read_port(row) for port, row in answer["ports"].items()}
    counts = answer.get("counts", {})

    # The switch counts the packets that its program drops by control (dropped_by_ingress and the
    # like), and those that it has received from its ports and from the controller.
    unrouted = sum(count for name, count in counts.items() if name.startswith("dropped_"))
    taken_in = counts.get("received", 0) - sum(port.received for port in ports.values())
    strays = tuple(answer.get("strays", ()))
    return SwitchCounters(ports, unrouted, taken_in - counts.get("packet_ins", 0), strays=strays)


def _ask(path: Path) -> dict[str, Any]:
    data = b""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
            channel.settimeout(ANSWER_SECONDS)
            channel.connect(str(path))
            while chunk := channel.recv(1 << 16):
                data += chunk

        answer: dict[str, Any] = json.loads(data)
    except (OSError, ValueError) as error:
        raise EmulationError(f"{path.stem} does not tell its counters: {error}") from error

    return answer


def set_rate(scenario: Scenario, folder: Path, end: LinkEnd, share: float) -> None:
    """Let a port of a running switch send at a share of its rate; raises OSError."""
    rate_bps = scenario.link_bps(scenario.tree.level_of(*end), share)
    path = rates_socket(folder, switch_name(scenario.tree, end.switch))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        channel.settimeout(ANSWER_SECONDS)
        channel.connect(str(path))
        channel.sendall(json.dumps({"rates_bps": {end.port: rate_bps}}).encode() + b"\n")
        answer = channel.recv(1 << 16)

    if answer != b"{}":
        raise OSError(answer.decode() or "it has closed the connection")


def _read_port(row: dict[str, Any]) -> PortCounters:
    return PortCounters(
        packets=row["tx_packets"],
        bytes=row["tx_bytes"],
        drops=row["queue_drops"] + row["priority_drops"] + row["waiting_drops"],
        # A frame refused with ENOBUFS is among those that the kernel counts (`interface_counts`).
        failed=row["tx_failed"] - row.get("tx_no_buffers", 0),
        missed=row["kernel_drops"],
        received=row["rx_packets"],
        max_queue_bytes=row.get("max_queue_bytes"),
        queue_bytes=row.get("queue_bytes", 0),
        pauses=row.get("pauses", 0),
        paused_ps=row.get("paused_ps", 0),
        control_sent=row.get("control_sent", 0),
        control_received=row.get("control_received", 0),
        control_refused=row.get("control_refused", 0),
    )


def set_interfaces(names: Sequence[str], up: bool, _latency_us: int) -> None:
    """Set interfaces up or down, in this thread's network namespace; raises NetworkError."""
    ip_batch(f"link set {name} {'up' if up else 'down'}" for name in names)


SOFTSWITCH = Target(
    name="softswitch",
    title="softswitch",
    command=command,
    prepare=need_nothing,
    set_queues=None,
    set_rate=set_rate,
    counters=read_counters,
    set_interfaces=set_interfaces,
    priorities=priorities,
)
