"""A virtual network of P4 switches, driven through P4Runtime by the real controller."""

import time
from collections.abc import Callable, Iterable
from functools import partial

from controller.convergence import Convergence
from controller.driver import Driver
from controller.fabric_controller import FabricController, LinkChange, Step
from controller.liveness import liveness
from controller.local_repair import LocalAgent
from controller.session import InProcess, Session
from emulation.errors import UnsupportedError
from emulation.outcomes.outcome import Outcome
from emulation.programs.switch_program import CPU_PORT, SwitchProgram, built_in
from emulation.softswitch.p4runtime import P4RuntimeService, StatusError
from emulation.softswitch.switch import Switch
from emulation.virtual.events import Clock, Kind
from emulation.virtual.network import Network, SwitchDraws
from emulation.virtual.ports import Outage
from emulation.virtual.probes import VirtualProbes
from fattree import failures, traffic
from fattree.addressing import device_id, switch_name
from fattree.experiment import Scenario
from fattree.horizon import given_up_ps
from hostagent.build import paced_gaps
from hostagent.state import NEVER

# The register in which programs count the bytes that wait at each port (include/queue_stats.p4).
QUEUE_LENGTHS = "queue_bytes"


class VirtualFabric:
    """Switches, controller and network of one scenario; `run` ends with its outcome.

    Raises UnsupportedError for what virtual time does not offer, FabricError and ControllerError
    for scenarios that cannot be built.
    """

    def __init__(self, scenario: Scenario, program: SwitchProgram | None = None) -> None:
        refuse_unsupported(scenario)
        program = program or built_in(scenario.scheme.program, scenario.tree.half)
        self.scenario = scenario
        self.clock = Clock()
        self.switches = [
            _switch(scenario, switch, self.clock) for switch in range(scenario.tree.switches)
        ]
        self.sessions = [
            _session(scenario, number, switch, program)
            for number, switch in enumerate(self.switches)
        ]

        self._writers = [
            LocalAgent(session) if scenario.failures.local_repair else session
            for session in self.sessions
        ]

        # A controller that is told of failures begins with the routes of those at time 0; one that
        # probes has to find them out.
        line = failures.timeline(scenario, traffic.flows(scenario))
        first_routes = line.first_routes if self.is_announced else frozenset()
        self.controller = FabricController(scenario, program.pipeline, first_routes)
        self.network = Network(scenario, self.switches, self.clock, outages(line.changes))
        self.network.on_drop = self._forget
        self._driver = Driver(
            self.controller,
            clock=self.clock,
            at=self._control_at,
            write=self._write,
            tell_hosts=self.network.hosts.converge,
        )
        self._driver.start()
        self.network.hosts.converge(first_routes)

        for change in line.changes:
            # `first_routes` is what the controller has been given; it must not hear of it twice.
            is_known = change.time_ps == 0 and bool(first_routes)
            event = LinkChange(change.down, change.up)
            self.network.at(change.time_ps, Kind.LINK, partial(self._links_change, event, is_known))

        probing = liveness(scenario)
        if probing:
            VirtualProbes(
                self.network,
                switches=self.switches,
                sessions=self.sessions,
                liveness=probing,
                on_change=self.change_links,
            )

    @property
    def installations(self) -> list[Convergence]:
        """Return what has become of the changes that the controller knows of."""
        return self._driver.installations

    @property
    def is_announced(self) -> bool:
        """Return whether the network tells the controller of its failures."""
        return self.scenario.controller.detection == "announced"

    def _links_change(self, change: LinkChange, is_known: bool = False) -> None:
        """Let switches, and in an announced world the controller, know of changed links."""
        self._driver.note(change.down | change.up)
        for link in sorted(change.down | change.up):
            for end in self.scenario.tree.link_ends(link):
                writer = self._writers[end.switch]
                if isinstance(writer, LocalAgent):
                    writer.set_port(end.port, link in change.up)

        if self.is_announced and not is_known:
            self.change_links(change)

    def change_links(self, change: LinkChange) -> None:
        """Tell the controller of changed links; what it decides takes effect when it is due."""
        self._driver.learn(change)

    def inject(self, change: LinkChange) -> None:
        """Break and mend links now, in the middle of a run, as if the experiment had said so."""
        self.network.set_links(change.down, up=False)
        self.network.set_links(change.up, up=True)
        self._links_change(change)

    def run(
        self, horizon_ps: int | None = None, on_progress: Callable[[float], None] | None = None
    ) -> Outcome:
        """Run until all flows are done; raises EmulationError where they are not by the horizon.

        By default that is `fattree.horizon`'s.
        """
        started = time.process_time()
        self.network.run(
            default_horizon_ps(self.scenario) if horizon_ps is None else horizon_ps, on_progress
        )
        return self.network.outcome(time.process_time() - started)

    def _forget(self, switch: int, port: int, size: int) -> None:
        """Take a tail drop out of the program's queue length at once.

        The packet never comes to egress, so that the program itself, as on BMv2, finds out when the
        queue is next empty; the run model knows no such error.
        """
        # Ingress added it when it sent the packet to the port (include/queue_stats.p4).
        pipeline = self.switches[switch].pipeline
        assert pipeline is not None
        for array, cells in zip(pipeline.program.registers, pipeline.registers, strict=True):
            if array.name == QUEUE_LENGTHS:
                cells[port] -= size

    def _control_at(self, time_ps: int, action: Callable[[], object]) -> None:
        self.network.at(time_ps, Kind.CONTROL, action)

    def _write(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self._writers[step.switch].write(step.changes)


def refuse_unsupported(scenario: Scenario) -> None:
    """Raise UnsupportedError where the scenario needs more than the virtual network offers."""
    if scenario.load_balancer.queue_staleness_ns:
        raise UnsupportedError(
            "load_balancer.queue_staleness_ns: time stamps in P4 are whole microseconds, so that a"
            " snapshot 100 ns old cannot be kept; only the simulator ages queue lengths"
            " (--network sim)"
        )

    if scenario.controller.detection == "netlink":
        raise UnsupportedError(
            'controller.detection = "netlink": '
            "virtual links have no kernel interfaces (--network mininet)"
        )


def _switch(scenario: Scenario, number: int, clock: Clock) -> Switch:
    draws = SwitchDraws(scenario.seed, number)
    cpu_port = CPU_PORT if scenario.controller.detection == "probe" else None
    return Switch(
        device_id(number), clock, random=draws, ports=scenario.tree.ports(number), cpu_port=cpu_port
    )


def _session(scenario: Scenario, number: int, switch: Switch, program: SwitchProgram) -> Session:
    transport = InProcess(P4RuntimeService(switch), StatusError)
    name = switch_name(scenario.tree, number)
    session = Session(transport, program.pipeline, device_id(number), name)
    session.open()
    session.push(program.bmv2_json)

    return session


def default_horizon_ps(scenario: Scenario) -> int:
    """Return when a run is given up."""
    flows = traffic.flows(scenario)
    events = failures.timeline(scenario, flows)
    return given_up_ps(scenario, flows, events, paced_gaps(scenario, flows))


def outages(changes: Iterable[failures.LinkChange]) -> dict[int, list[Outage]]:
    """Return when each link is down."""
    down_since: dict[int, int] = {}
    found: dict[int, list[Outage]] = {}
    for change in changes:
        down_since.update((link, change.time_ps) for link in change.down - down_since.keys())
        for link in change.up & down_since.keys():
            found.setdefault(link, []).append((down_since.pop(link), change.time_ps))

    for link, since_ps in down_since.items():
        found.setdefault(link, []).append((since_ps, NEVER))

    return found
