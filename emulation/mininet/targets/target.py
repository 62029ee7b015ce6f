"""The kinds of switches of a Mininet network: their differences, and the options they share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from emulation.mininet.counters import SwitchCounters
from emulation.mininet.kernel import InterfaceCounts
from emulation.programs.switch_program import CPU_PORT, Priorities
from fattree.experiment.failures import Detection
from fattree.experiment.model import Scenario
from fattree.shape.addressing import device_id, interface_name, switch_name
from fattree.shape.topology import Level, LinkEnd
from fattree.units import PS_PER_US


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of switch: `name` is for the command line, `title` for messages.

    `command` makes the command line of a switch; its first word is the program. Its last argument
    is the length of the program's header between edges.
    `prepare` makes the machine ready for a network: NetworkError where it cannot.
    `set_queues` gives a running switch its rates and depths: OSError where it refuses. None where
    the command line does.
    `set_rate` lets a port of a running switch, whose sockets are in a folder, send at a share of
    its link's rate: OSError where the switch refuses.
    `counters` are those of a switch, from the Unix socket on which it may report them and the
    kernel's counts of its interfaces by port: EmulationError where it does not report them.
    `set_interfaces` lets the links of some latency behind interfaces carry frames, or none:
    NetworkError. Where it `swallows` them, the kernel's queueing disciplines count the losses.
    `listens` returns whether a switch can be called in its own way, beside P4Runtime.
    `priorities` are the queues that programs put packets in, which gives their number.
    `refused_detections`, `refused_registers` and `refused_pauses` give the reason why a feature is
    refused, and the alternative.
    """

    name: str
    title: str
    command: Callable[[Scenario, int, Path, int], list[str]]
    prepare: Callable[[Scenario], None]
    set_queues: Callable[[Scenario, int], None] | None
    set_rate: Callable[[Scenario, Path, LinkEnd, float], None]
    counters: Callable[[Path, Mapping[int, InterfaceCounts]], SwitchCounters]
    set_interfaces: Callable[[Sequence[str], bool, int], None]
    priorities: Callable[[Scenario], Priorities]
    listens: Callable[[int], bool] = lambda _switch: True
    refused_detections: Mapping[Detection, str] = field(default_factory=dict)
    refused_registers: str = ""
    refused_pauses: str = ""
    swallows: bool = False


def address(folder: Path, name: str) -> str:
    """Return the gRPC address of a switch: a Unix socket, so that ports cannot clash."""
    return f"unix:{folder / name}.grpc"


def latency_us(scenario: Scenario, level: Level) -> int:
    """Return the latency of a level's links in us: less than one, software takes anyway."""
    return round(scenario.latencies_ps[level] / PS_PER_US)


def stats_socket(folder: Path, name: str) -> Path:
    """Return the socket on which a switch reports its counters, if its kind does."""
    return folder / f"{name}.stats"


def rates_socket(folder: Path, name: str) -> Path:
    """Return the socket on which a switch takes new rates of its ports, if its kind does."""
    return folder / f"{name}.rates"


def common_options(scenario: Scenario, switch: int, folder: Path) -> list[str]:
    """Return the options that all targets take: general ones, then `--` and those of the target.

    Our switch has the options of BMv2's simple_switch_grpc, so that either fits into the other's
    place.
    """
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


def queue_options(priorities: Priorities) -> list[str]:
    """Return the option with the number of priority queues of a port."""
    # Numbered from 0.
    return ["--priority-queues", str(1 + max(priorities.control, priorities.acks))]
