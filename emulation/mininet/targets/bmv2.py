"""BMv2's simple_switch_grpc as a process of a Mininet network.

It counts nothing outside of programs and delays nothing, so the kernel does both for it.
"""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from emulation.errors import NetworkError
from emulation.mininet.counters import PortCounters, SwitchCounters
from emulation.mininet.kernel import InterfaceCounts, add_latency, swallow
from emulation.mininet.targets.bmv2_queues import (
    ACK_QUEUE,
    FIRST_THRIFT_PORT,
    listens,
    set_queues,
    set_rate,
)
from emulation.mininet.targets.target import (
    Target,
    common_options,
    latency_us,
    queue_options,
)
from emulation.programs.switch_program import Priorities
from fattree.experiment.model import Scenario
from fattree.shape.addressing import interface_name
from fattree.shape.topology import Level

PROGRAM = "simple_switch_grpc"


def command(scenario: Scenario, switch: int, folder: Path, _edge_header_bytes: int) -> list[str]:
    """Return the command line; rates and depths come later (`bmv2_queues`)."""
    return [
        PROGRAM,
        "--thrift-port",
        str(FIRST_THRIFT_PORT + switch),
        "--log-console",
        "-L",
        "warn",
        *common_options(scenario, switch, folder),
        *queue_options(priorities(scenario)),
    ]


def priorities(_scenario: Scenario) -> Priorities:
    """Return the queues: ACKs share a queue of their own rate with the controller's few packets."""
    return Priorities(control=ACK_QUEUE, acks=ACK_QUEUE)


def prepare(scenario: Scenario) -> None:
    """See that BMv2 is here, and give links the latency that our switch makes by itself.

    Raises NetworkError.
    """
    refuse_without_bmv2()

    tree = scenario.tree
    for level in Level:
        if microseconds := latency_us(scenario, level):
            names = [
                interface_name(tree, switch, port)
                for switch in range(tree.switches)
                for port in tree.ports(switch)
                if tree.level_of(switch, port) is level
            ]
            add_latency(names, microseconds)


def refuse_without_bmv2() -> None:
    """Raise NetworkError where BMv2 is missing or does not start."""
    if shutil.which(PROGRAM) is None:
        raise NetworkError(
            f"{PROGRAM} is not on PATH: install BMv2 (docs/bmv2.md says how),"
            " or use --switch softswitch"
        )

    # One that misses a library is on PATH all the same.
    done = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=False)
    if done.returncode:
        complaint = (done.stderr or done.stdout).strip().splitlines()[:2]
        raise NetworkError(f"{PROGRAM} does not start: {' | '.join(complaint)}")


def kernel_counters(_path: Path, kernel: Mapping[int, InterfaceCounts]) -> SwitchCounters:
    """Return the kernel's counters of a switch, which drops from full queues silently.

    So `unrouted` is the number of packets that came in and did not leave: without a route, or
    dropped by a full queue. The controller's packets leave without having come in, and lower it.
    """
    ports = {
        port: PortCounters(count.sent, count.sent_bytes, received=count.received)
        for port, count in kernel.items()
    }

    arrived = sum(count.received for count in kernel.values())
    departed = sum(count.sent + count.refused for count in kernel.values())
    return SwitchCounters(ports, unrouted=arrived - departed)


def set_interfaces(names: Sequence[str], up: bool, microseconds: int) -> None:
    """Let the links behind interfaces carry frames, or lose them all; raises NetworkError."""
    # BMv2 receives nothing more at any port while one of its interfaces is down.
    swallow(names, not up, microseconds)


BMV2 = Target(
    name="bmv2",
    title="BMv2",
    command=command,
    prepare=prepare,
    set_queues=set_queues,
    set_rate=set_rate,
    listens=listens,
    counters=kernel_counters,
    set_interfaces=set_interfaces,
    priorities=priorities,
    swallows=True,
    refused_detections={
        "netlink": "BMv2 cannot bear an interface to go down: take announced or probe"
    },
    refused_registers=(
        "BMv2 refuses to read registers over P4Runtime; --switch softswitch answers"
    ),
    refused_pauses="BMv2 neither sends nor heeds pauses: take --switch softswitch",
)
