"""The switches of a Mininet network as processes: their command lines, their start in parallel, their counters.

`softswitch` is ours; `bmv2` is simple_switch_grpc with the same options, whose rates are packets per second, set
through its own tool, and whose links have a latency only where the kernel offers netem.
"""

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from emulation.children import SOFTSWITCH, Children, children
from emulation.errors import EmulationError, NetworkError, StartError
from emulation.kernel import add_latency, refused_frames
from fabric.addressing import device_id, interface_name, switch_name
from fabric.draws import Stream, component, mix
from fabric.experiment import PS_PER_SECOND, Scenario

SwitchKind = Literal["softswitch", "bmv2"]
BMV2, BMV2_TOOL = "simple_switch_grpc", "simple_switch_CLI"
FIRST_THRIFT_PORT = 9090
CPU_PORT = 510
UNLIMITED_BYTES = 2**62
PS_PER_US = 10**6
START_SECONDS = 90.0
ANSWER_SECONDS = 10.0


def address(folder: Path, name: str) -> str:
    """Return the gRPC address of a switch: a Unix socket, which clashes with nobody and is open to root only."""
    return f"unix:{folder / name}.grpc"


def softswitch_command(scenario: Scenario, switch: int, folder: Path) -> list[str]:
    """Return the command line of our switch, with the scenario's rate, queue, gap and latency."""
    fabric, name = scenario.fabric, switch_name(scenario.tree, switch)
    options = {
        "--rate-bps": scenario.rate_bps,
        "--queue-bytes": fabric.queue_bytes or UNLIMITED_BYTES,
        "--gap-bytes": scenario.packets.gap_bytes,
        "--delay-us": round(scenario.latency_ps / PS_PER_US),
        "--stats-socket": folder / f"{name}.stats",
        "--seed": int(mix(scenario.seed, component(Stream.SWITCH, switch), 0)),
    }
    return [SOFTSWITCH, *_common(scenario, switch, folder), *(str(word) for pair in options.items() for word in pair)]


def bmv2_command(scenario: Scenario, switch: int, folder: Path) -> list[str]:
    """Return the command line of simple_switch_grpc."""
    general = [BMV2, "--thrift-port", str(FIRST_THRIFT_PORT + switch), "--log-console", "-L", "warn"]
    return [*general, *_common(scenario, switch, folder)]


def _common(scenario: Scenario, switch: int, folder: Path) -> list[str]:
    tree = scenario.tree
    ports = [word for port in tree.ports(switch) for word in ("-i", f"{port}@{interface_name(tree, switch, port)}")]
    target = ["--grpc-server-addr", address(folder, switch_name(tree, switch)), "--cpu-port", str(CPU_PORT)]
    return ["--no-p4", "--device-id", str(device_id(switch)), *ports, "--", *target]


@dataclass(frozen=True, slots=True)
class PortCounters:
    """What one port of a switch has counted since it started; `missed` were not taken from the kernel in time."""

    packets: int = 0
    bytes: int = 0
    drops: int = 0
    lost: int = 0
    missed: int = 0
    received: int = 0
    max_queue_bytes: int = 0


@dataclass(frozen=True, slots=True)
class SwitchCounters:
    """The counters of a switch: per port, and the packets that its program dropped."""

    ports: dict[int, PortCounters]
    unrouted: int


@dataclass(slots=True)
class Switches:
    """The running switches of a network."""

    scenario: Scenario
    kind: SwitchKind
    folder: Path
    processes: Children

    def counters(self) -> list[SwitchCounters]:
        """Return the counters of all switches; what the kernel refused to carry on a link counts as lost there."""
        tree, refused = self.scenario.tree, refused_frames()
        found = []
        for switch in range(tree.switches):
            own = self._own_counters(switch)
            names = {port: interface_name(tree, switch, port) for port in own.ports}
            ports = {port: replace(count, lost=count.lost + refused[names[port]]) for port, count in own.ports.items()}
            found.append(SwitchCounters(ports, own.unrouted))
        return found

    def _own_counters(self, switch: int) -> SwitchCounters:
        """Ask a switch for its counters; BMv2 has none outside of programs."""
        if self.kind == "bmv2":
            return SwitchCounters({port: PortCounters() for port in self.scenario.tree.ports(switch)}, 0)
        try:
            return _read_counters(_statistics(self.folder / f"{switch_name(self.scenario.tree, switch)}.stats"))
        except EmulationError:
            self.processes.refuse_ending()
            raise


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
    return SwitchCounters(ports, sum(count for name, count in counts.items() if name.startswith("dropped_")))


def _read_port(row: dict[str, Any]) -> PortCounters:
    return PortCounters(
        packets=row["tx_packets"],
        bytes=row["tx_bytes"],
        drops=row["queue_drops"] + row["priority_drops"],
        # A frame refused with ENOBUFS is among those that the kernel counts (`refused_frames`).
        lost=row["tx_failed"] - row.get("tx_no_buffers", 0),
        missed=row["kernel_drops"],
        received=row["rx_packets"],
        max_queue_bytes=row.get("max_queue_bytes", 0),
    )


@contextmanager
def switches(scenario: Scenario, kind: SwitchKind, folder: Path) -> Iterator[Switches]:
    """Start all switches of a scenario in this thread's network namespace; raises StartError, naming one that fails."""
    tree = scenario.tree
    command = softswitch_command if kind == "softswitch" else bmv2_command
    if kind == "bmv2":
        refuse_without_bmv2()
    (folder / "logs").mkdir()
    with children() as processes:
        for switch in range(tree.switches):
            name = switch_name(tree, switch)
            processes.start(name, command(scenario, switch, folder), folder / "logs" / f"{name}.log")
        processes.await_all(lambda name: _listens(folder / f"{name}.grpc"), START_SECONDS)
        if kind == "bmv2":
            _set_queues(scenario)
        yield Switches(scenario, kind, folder, processes)


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        try:
            channel.connect(str(path))
        except OSError:
            return False
    return True


def refuse_without_bmv2() -> None:
    """Raise NetworkError where BMv2's programs are missing."""
    for program in (BMV2, BMV2_TOOL):
        if shutil.which(program) is None:
            raise NetworkError(f"{program} is not on PATH: install BMv2 (`ofan doctor` says how), or use --switch softswitch")


def _set_queues(scenario: Scenario) -> None:
    """Give BMv2's ports the scenario's rate in data packets per second and its depth in data packets."""
    rate = max(1, round(PS_PER_SECOND / scenario.slot_ps))
    depth = scenario.fabric.queue_bytes // scenario.data_bytes or 1 << 20
    script = f"set_queue_depth {depth}\nset_queue_rate {rate}\n"
    tree = scenario.tree
    for switch in range(tree.switches):
        command = [BMV2_TOOL, "--thrift-port", str(FIRST_THRIFT_PORT + switch)]
        done = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
        if done.returncode or "Invalid" in done.stdout:
            raise StartError(f"{switch_name(tree, switch)}: {BMV2_TOOL} could not set rates: {done.stdout[-200:].strip()}")
    if scenario.latency_ps:
        names = [interface_name(tree, switch, port) for switch in range(tree.switches) for port in tree.ports(switch)]
        add_latency(names, round(scenario.latency_ps / PS_PER_US))
