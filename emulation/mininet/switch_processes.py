"""The switches of a Mininet network as processes: their command lines, their start in parallel,
their counters.

`softswitch` is ours; `bmv2` is simple_switch_grpc, which takes the same options
(`emulation.programs.bmv2` has what differs).
"""

import json
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from emulation.errors import EmulationError, StartError
from emulation.mininet.children import SOFTSWITCH, Children, children, ending, last_words
from emulation.mininet.kernel import InterfaceCounts, add_latency, interface_counts
from emulation.programs import bmv2
from fattree.addressing import device_id, interface_name, switch_name, switch_named
from fattree.draws import Stream, component, mix
from fattree.experiment import Scenario
from fattree.units import PS_PER_US

SwitchKind = Literal["softswitch", "bmv2"]
CPU_PORT = 510
UNLIMITED_BYTES = 2**62
START_SECONDS = 90.0
ANSWER_SECONDS = 10.0


def address(folder: Path, name: str) -> str:
    """Return the gRPC address of a switch: a Unix socket, which clashes with nobody and is open to
    root only.
    """
    return f"unix:{folder / name}.grpc"


def softswitch_command(scenario: Scenario, switch: int, folder: Path) -> list[str]:
    """Return the command line of our switch, with the scenario's rate, queue, gap and latency."""
    fabric = scenario.fabric
    name = switch_name(scenario.tree, switch)
    options = {
        "--rate-bps": scenario.rate_bps,
        "--queue-bytes": fabric.queue_bytes or UNLIMITED_BYTES,
        "--gap-bytes": scenario.packets.gap_bytes,
        "--delay-us": round(scenario.latency_ps / PS_PER_US),
        "--stats-socket": folder / f"{name}.stats",
        "--priority-queues": 2 if scenario.controller.detection == "probe" else 1,
        "--seed": int(mix(scenario.seed, component(Stream.SWITCH, switch), 0)),
    }

    return [
        SOFTSWITCH,
        *_common(scenario, switch, folder),
        *(str(word) for pair in options.items() for word in pair),
    ]


def bmv2_command(scenario: Scenario, switch: int, folder: Path) -> list[str]:
    """Return the command line of simple_switch_grpc."""
    return bmv2.command(switch, _common(scenario, switch, folder))


def _common(scenario: Scenario, switch: int, folder: Path) -> list[str]:
    tree = scenario.tree
    ports = [
        word
        for port in tree.ports(switch)
        for word in ("-i", f"{port}@{interface_name(tree, switch, port)}")
    ]

    target = [
        "--grpc-server-addr",
        address(folder, switch_name(tree, switch)),
        "--cpu-port",
        str(CPU_PORT),
    ]

    return ["--no-p4", "--device-id", str(device_id(switch)), *ports, "--", *target]


@dataclass(frozen=True, slots=True)
class PortCounters:
    """What one port of a switch has counted since it started.

    `missed` were not taken from the kernel in time.
    """

    packets: int = 0
    bytes: int = 0
    drops: int = 0
    lost: int = 0
    missed: int = 0
    received: int = 0
    max_queue_bytes: int = 0
    queue_bytes: int = 0


@dataclass(frozen=True, slots=True)
class SwitchCounters:
    """The counters of a switch: per port, and the packets that its program dropped."""

    ports: dict[int, PortCounters]
    unrouted: int


@dataclass(slots=True)
class Switches:
    """The running switches of a network.

    Where they `may_restart`, one that does not answer has counted nothing.
    """

    scenario: Scenario
    kind: SwitchKind
    folder: Path
    processes: Children
    may_restart: bool = False

    def restart(self, name: str) -> str:
        """Start a switch that has ended again; return how it had ended.

        It comes up empty, and its counters at 0.
        """
        for kind in ("grpc", "stats"):
            (self.folder / f"{name}.{kind}").unlink(missing_ok=True)

        ended = f"{name} {ending(self.processes.exited.pop(name))}"
        switch = switch_named(self.scenario.tree, name)
        self._start(switch)

        if self.kind == "bmv2":
            self.await_ready()
            self.set_queues([switch])

        return ended

    def await_ready(self) -> None:
        """Wait until every switch listens.

        Raises StartError, naming one that has ended or is late.
        """
        self.processes.await_all(lambda name: listens(self.folder / f"{name}.grpc"), START_SECONDS)

    def start(self) -> None:
        """Start all switches."""
        for switch in range(self.scenario.tree.switches):
            self._start(switch)

    def _start(self, switch: int) -> None:
        command = softswitch_command if self.kind == "softswitch" else bmv2_command
        name = switch_name(self.scenario.tree, switch)
        self.processes.start(
            name, command(self.scenario, switch, self.folder), self.folder / "logs" / f"{name}.log"
        )

    def set_queues(self, switches: Iterable[int]) -> None:
        """Set rates and depths of BMv2's queues.

        Raises StartError with what the switch has said.
        """
        for switch in switches:
            try:
                bmv2.set_queues(self.scenario, switch)
            except OSError as error:  # noqa: PERF203
                name = switch_name(self.scenario.tree, switch)
                words = last_words(self.processes.logs[name])
                raise StartError(
                    f"{name}: BMv2 does not let its queues be set ({error}): {words}"
                ) from None

    def counters(self) -> list[SwitchCounters]:
        """Return the counters of all switches.

        What the kernel refused to carry on a link counts as lost there.
        """
        tree = self.scenario.tree
        counts = interface_counts()
        found = []

        for switch in range(tree.switches):
            kernel = {
                port: counts[interface_name(tree, switch, port)] for port in tree.ports(switch)
            }
            own = (
                self._own_counters(switch)
                if self.kind == "softswitch"
                else _kernel_counters(kernel)
            )

            ports = {
                port: replace(count, lost=count.lost + kernel[port].refused)
                for port, count in own.ports.items()
            }

            found.append(SwitchCounters(ports, own.unrouted))

        return found

    def _own_counters(self, switch: int) -> SwitchCounters:
        """Ask a switch for its counters."""
        try:
            return _read_counters(
                _statistics(self.folder / f"{switch_name(self.scenario.tree, switch)}.stats")
            )
        except EmulationError:
            if self.may_restart:
                return SwitchCounters(
                    {port: PortCounters() for port in self.scenario.tree.ports(switch)}, 0
                )

            self.processes.refuse_ending()
            raise


def _kernel_counters(kernel: dict[int, InterfaceCounts]) -> SwitchCounters:
    """Return what the kernel knows of BMv2, which counts nothing outside of programs and drops from
    full queues silently.
    """
    ports = {
        port: PortCounters(count.sent, count.sent_bytes, received=count.received)
        for port, count in kernel.items()
    }

    leaving = sum(count.sent + count.refused for count in kernel.values())
    return SwitchCounters(ports, max(0, sum(count.received for count in kernel.values()) - leaving))


def _statistics(path: Path) -> dict[str, Any]:
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


def _read_counters(answer: dict[str, Any]) -> SwitchCounters:
    ports = {int(port): _read_port(row) for port, row in answer["ports"].items()}
    counts = answer.get("counts", {})
    return SwitchCounters(
        ports, sum(count for name, count in counts.items() if name.startswith("dropped_"))
    )


def _read_port(row: dict[str, Any]) -> PortCounters:
    return PortCounters(
        packets=row["tx_packets"],
        bytes=row["tx_bytes"],
        drops=row["queue_drops"] + row["priority_drops"],
        # A frame refused with ENOBUFS is among those that the kernel counts (`interface_counts`).
        lost=row["tx_failed"] - row.get("tx_no_buffers", 0),
        missed=row["kernel_drops"],
        received=row["rx_packets"],
        max_queue_bytes=row.get("max_queue_bytes", 0),
        queue_bytes=row.get("queue_bytes", 0),
    )


@contextmanager
def switches(scenario: Scenario, kind: SwitchKind, folder: Path) -> Iterator[Switches]:
    """Start all switches of a scenario in this thread's network namespace.

    Raises StartError, naming one that fails.
    """
    if kind == "bmv2":
        bmv2.refuse_without_bmv2()
        _delay_links(scenario)

    (folder / "logs").mkdir()
    with children() as processes:
        started = Switches(scenario, kind, folder, processes)
        started.start()
        started.await_ready()

        if kind == "bmv2":
            started.set_queues(range(scenario.tree.switches))

        yield started


def listens(path: Path) -> bool:
    """Return whether somebody answers at a Unix socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        try:
            channel.connect(str(path))
        except OSError:
            return False

    return True


def _delay_links(scenario: Scenario) -> None:
    """Give links the latency that our switch makes by itself, where it is a microsecond or more.

    Raises NetworkError.
    """
    if microseconds := round(scenario.latency_ps / PS_PER_US):
        tree = scenario.tree
        names = [
            interface_name(tree, switch, port)
            for switch in range(tree.switches)
            for port in tree.ports(switch)
        ]

        add_latency(names, microseconds)
