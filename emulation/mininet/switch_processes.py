"""The switches of a Mininet network as processes: start, end and restart, and their counters.

What depends on the kind of switch is in its `Target`.
"""

import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from emulation.errors import EmulationError, StartError
from emulation.mininet.children import Children, children, ending, last_words
from emulation.mininet.counters import PortCounters, SwitchCounters
from emulation.mininet.kernel import InterfaceCounts, interface_counts
from emulation.mininet.targets import SOFTSWITCH, Target
from emulation.mininet.targets.target import stats_socket
from fattree.addressing import interface_name, switch_name, switch_named
from fattree.experiment import Scenario
from fattree.topology import FatTree

# Many processes of a large network start side by side on few processors.
START_SECONDS = 90.0


@dataclass(slots=True)
class Switches:
    """The running switches of a network.

    Where they `may_restart`, one that does not answer has counted nothing.
    """

    scenario: Scenario
    target: Target
    folder: Path
    processes: Children
    may_restart: bool = False

    def restart(self, name: str) -> str:
        """Start a switch that has ended again; return how it had ended.

        It comes up empty, and its counters at 0.
        """
        # A Unix socket outlives its owner, and cannot be bound again while its file is there.
        for kind in ("grpc", "stats"):
            (self.folder / f"{name}.{kind}").unlink(missing_ok=True)

        ended = f"{name} {ending(self.processes.exited.pop(name))}"
        switch = switch_named(self.scenario.tree, name)
        self._start(switch)

        # Only queues that must be set are waited for; the controller tries again until it listens.
        if self.target.set_queues is not None:
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
        name = switch_name(self.scenario.tree, switch)
        command = self.target.command(self.scenario, switch, self.folder)
        self.processes.start(name, command, self.folder / "logs" / f"{name}.log")

    def set_queues(self, switches: Iterable[int]) -> None:
        """Set rates and depths of queues, where the command line could not.

        Raises StartError with what the switch has said.
        """
        if set_queues := self.target.set_queues:
            for switch in switches:
                self._set_queues(switch, set_queues)

    def _set_queues(self, switch: int, set_queues: Callable[[Scenario, int], None]) -> None:
        try:
            set_queues(self.scenario, switch)
        except OSError as error:
            name = switch_name(self.scenario.tree, switch)
            words = last_words(self.processes.logs[name])
            raise StartError(
                f"{name}: {self.target.title} does not let its queues be set ({error}): {words}"
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

            own = self._own_counters(switch, kernel)
            ports = {
                port: replace(count, lost=count.lost + kernel[port].refused)
                for port, count in own.ports.items()
            }

            found.append(SwitchCounters(ports, own.unrouted))

        return found

    def _own_counters(self, switch: int, kernel: dict[int, InterfaceCounts]) -> SwitchCounters:
        """Return what a switch has counted itself, or the kernel in its place."""
        tree = self.scenario.tree
        try:
            return self.target.counters(
                stats_socket(self.folder, switch_name(tree, switch)), kernel
            )
        except EmulationError:
            if self.may_restart:
                return SwitchCounters({port: PortCounters() for port in tree.ports(switch)}, 0)

            # That it has ended says more than that it does not answer.
            self.processes.refuse_ending()
            raise


@contextmanager
def switches(scenario: Scenario, target: Target, folder: Path) -> Iterator[Switches]:
    """Start all switches of a scenario in this thread's network namespace.

    Raises NetworkError where the machine lacks what they need, StartError, naming one that fails.
    """
    target.prepare(scenario)

    (folder / "logs").mkdir()
    with children() as processes:
        started = Switches(scenario, target, folder, processes)
        started.start()
        started.await_ready()
        started.set_queues(range(scenario.tree.switches))
        yield started


def set_link(tree: FatTree, link: int, up: bool, target: Target = SOFTSWITCH) -> None:
    """Let an inter-switch link carry frames or not, both ways, in this thread's network namespace.

    Raises NetworkError.
    """
    target.set_interfaces([interface_name(tree, *end) for end in tree.link_ends(link)], up)


def listens(path: Path) -> bool:
    """Return whether somebody answers at a Unix socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        try:
            channel.connect(str(path))
        except OSError:
            return False

    return True
