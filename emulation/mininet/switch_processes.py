"""The switches of a Mininet network as processes: start, end and restart, and their counters.

The differences between kinds of switches are in their `Target`.
"""

import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from controller.fleet import PATIENCE_S
from controller.patience import late
from emulation.errors import EmulationError, StartError
from emulation.mininet.children import Children, children, ending, last_words
from emulation.mininet.counters import PortCounters, SwitchCounters
from emulation.mininet.kernel import InterfaceBooks, InterfaceCounts
from emulation.mininet.targets import SOFTSWITCH, Target
from emulation.mininet.targets.target import latency_us, stats_socket
from fattree.experiment.model import Scenario
from fattree.shape.addressing import interface_name, switch_name, switch_named
from fattree.shape.topology import LinkEnd

# Many processes of a large network start side by side on few processors.
START_SECONDS = 90.0
# Threads that ask for counters; a frozen switch keeps one of them waiting for a while.
ASKERS = 32


@dataclass(slots=True)
class Switches:
    """The running switches of a network.

    Their program's packets have `edge_header_bytes` more between edges. Where they `may_restart`, a
    switch that is away has no counters for the moment. `shares` are the shares of their rates at
    which slow ports send.
    """

    scenario: Scenario
    target: Target
    folder: Path
    processes: Children
    edge_header_bytes: int = 0
    may_restart: bool = False
    shares: dict[LinkEnd, float] = field(default_factory=dict)
    _lives: dict[str, int] = field(default_factory=dict)
    _books: InterfaceBooks = field(default_factory=InterfaceBooks)
    _told: dict[int, SwitchCounters] = field(default_factory=dict)
    _asked: "dict[int, Future[SwitchCounters]]" = field(default_factory=dict)
    _askers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(ASKERS))

    def restart(self, name: str) -> str:
        """Start a switch that has ended again; return how it had ended.

        It comes up empty, and its counters at 0.
        """
        # A Unix socket outlives its owner, and cannot be bound again while its file is there.
        for kind in ("grpc", "stats", "rates"):
            (self.folder / f"{name}.{kind}").unlink(missing_ok=True)

        ended = f"{name} {ending(self.processes.exited.pop(name))}"
        switch = switch_named(self.scenario.tree, name)
        self._lives[name] = self._lives.get(name, 0) + 1
        self._told.pop(switch, None)
        self._start(switch)

        # Only queues that must be set are waited for; the controller tries again until it listens.
        slow = [end for end in self.shares if end.switch == switch]
        if self.target.set_queues is not None or slow:
            self.await_ready()
            self.set_queues([switch])

        for end in slow:
            self.set_rate(end, self.shares[end])

        return ended

    def await_ready(self) -> None:
        """Wait until every switch listens, to P4Runtime and its other interfaces.

        Raises StartError, naming a switch that has ended or is late.
        """
        self.processes.await_all(self._is_ready, START_SECONDS)

    def _is_ready(self, name: str) -> bool:
        is_heard = listens(self.folder / f"{name}.grpc")
        return is_heard and self.target.listens(switch_named(self.scenario.tree, name))

    def start(self) -> None:
        """Start all switches."""
        for switch in range(self.scenario.tree.switches):
            self._start(switch)

    def _start(self, switch: int) -> None:
        name = switch_name(self.scenario.tree, switch)
        command = self.target.command(self.scenario, switch, self.folder, self.edge_header_bytes)
        self.processes.start(name, command, self.folder / "logs" / f"{name}.log")

    def set_queues(self, switches: Iterable[int]) -> None:
        """Set rates and depths of queues, where the command line could not.

        Raises StartError with the switch's own message.
        """
        if set_queues := self.target.set_queues:
            for switch in switches:
                self._set_queues(switch, set_queues)

    def set_rate(self, end: LinkEnd, share: float) -> None:
        """Let a port send at a share of its rate, and remember it; raises StartError."""
        set_rate = self.target.set_rate
        self._set_queues(
            end.switch, lambda scenario, _switch: set_rate(scenario, self.folder, end, share)
        )
        self.shares[end] = share

    def _set_queues(self, switch: int, set_queues: Callable[[Scenario, int], None]) -> None:
        try:
            set_queues(self.scenario, switch)
        except OSError as error:
            name = switch_name(self.scenario.tree, switch)
            message = last_words(self.processes.logs[name])
            raise StartError(
                f"{name}: {self.target.title} does not let its queues be set ({error}): {message}"
            ) from None

    def counters(self) -> list[SwitchCounters]:
        """Return the counters of all switches, which are asked side by side.

        A switch that does not answer while others do is silent, and delays no other.
        """
        tree = self.scenario.tree
        has_losses = bool(self.scenario.failures.losses)
        counts = self._books.read(self.target.swallows or has_losses)
        kernel = {
            switch: {
                port: counts.get(interface_name(tree, switch, port), InterfaceCounts())
                for port in tree.ports(switch)
            }
            for switch in range(tree.switches)
        }

        told = self._ask(kernel)
        return [
            self._with_kernel(switch, kernel[switch], switch in told)
            for switch in range(tree.switches)
        ]

    def _ask(self, kernel: dict[int, dict[int, InterfaceCounts]]) -> set[int]:
        """Ask all switches; return the switches that have sent their counters."""
        # A switch that still owes an answer is not asked again.
        for switch, ports in kernel.items():
            before = self._asked.get(switch)
            if before is None or before.done():
                self._asked[switch] = self._askers.submit(self._own_counters, switch, ports)

        late(self._asked.values(), PATIENCE_S)
        answered = set()
        for switch, asked in self._asked.items():
            # Once: an answer a moment later does not count this time.
            if asked.done() and (told := self._answer(asked)) is not None:
                self._told[switch] = told
                answered.add(switch)

        return answered

    def _answer(self, asked: "Future[SwitchCounters]") -> SwitchCounters | None:
        try:
            return asked.result()
        except EmulationError:
            if self.may_restart:
                return None

            # The end of a process is a better error than a missing answer.
            self.processes.refuse_ending()
            raise

    def _own_counters(self, switch: int, kernel: dict[int, InterfaceCounts]) -> SwitchCounters:
        """Return the switch's own counters, or the kernel's in their place."""
        path = stats_socket(self.folder, switch_name(self.scenario.tree, switch))
        return self.target.counters(path, kernel)

    def _with_kernel(
        self, switch: int, kernel: dict[int, InterfaceCounts], has_told: bool
    ) -> SwitchCounters:
        """Return the last counters of a switch, with the kernel's counters of now."""
        name = switch_name(self.scenario.tree, switch)
        nothing = SwitchCounters({port: PortCounters() for port in kernel}, 0)
        counters = self._told.get(switch, nothing)

        return replace(
            counters,
            ports={
                port: replace(count, refused=kernel[port].refused)
                for port, count in counters.ports.items()
            },
            arrived=sum(
                count.received - counters.ports[port].control_received
                for port, count in kernel.items()
            ),
            left=sum(
                count.sent - counters.ports[port].control_sent for port, count in kernel.items()
            ),
            life=self._lives.get(name, 0),
            is_silent=not has_told,
        )

    def close(self) -> None:
        """Stop asking switches."""
        self._askers.shutdown(wait=False, cancel_futures=True)


@contextmanager
def switches(
    scenario: Scenario,
    target: Target,
    folder: Path,
    kept: Sequence[str] = (),
    edge_header_bytes: int = 0,
) -> Iterator[Switches]:
    """Start all switches of a scenario in this thread's network namespace.

    `kept` are the keys of the machine code that they will ask for. Packets have `edge_header_bytes`
    more between edges, a header of the program's.
    Raises NetworkError where the machine lacks a program, StartError, naming a switch that fails.
    """
    target.prepare(scenario)

    (folder / "logs").mkdir()
    with children(folder, kept) as processes:
        started = Switches(scenario, target, folder, processes, edge_header_bytes)
        started.start()
        started.await_ready()
        started.set_queues(range(scenario.tree.switches))
        try:
            yield started
        finally:
            started.close()


def set_link(scenario: Scenario, link: int, up: bool, target: Target = SOFTSWITCH) -> None:
    """Let an inter-switch link carry frames or not, both ways, in this thread's network namespace.

    Raises NetworkError.
    """
    tree = scenario.tree
    names = [interface_name(tree, *end) for end in tree.link_ends(link)]
    level = tree.level_of(*tree.link_ends(link)[0])
    target.set_interfaces(names, up, latency_us(scenario, level))


def listens(path: Path) -> bool:
    """Return whether a process accepts connections at a Unix socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        try:
            channel.connect(str(path))
        except OSError:
            return False

    return True
