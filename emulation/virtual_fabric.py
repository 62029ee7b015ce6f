"""A virtual network whose switches run a P4 program, driven through P4Runtime by the same controller as real ones."""

import time
from collections.abc import Callable, Iterable
from functools import partial

from controller.fabric_controller import FabricController, LinkChange, Step
from controller.session import InProcess, Session
from emulation.errors import UnsupportedError
from emulation.outcome import Outcome
from emulation.ports import Outage
from emulation.programs import SwitchProgram, built_in
from emulation.softswitch.p4runtime import P4RuntimeService, StatusError
from emulation.softswitch.switch import Switch
from emulation.virtual import Clock, Kind, Network, SwitchDraws
from fabric import failures, traffic
from fabric.addressing import device_id, switch_name
from fabric.bounds import bound_ps
from fabric.experiment import Scenario
from hostagent.build import paced_gaps
from hostagent.state import NEVER

QUEUE_LENGTHS = "queue_bytes"
HORIZON_BOUNDS = 100


class VirtualFabric:
    """Switches, controller and network of one scenario; `run` ends with its outcome.

    Raises UnsupportedError for what virtual time does not offer, FabricError and ControllerError for scenarios that
    cannot be built.
    """

    def __init__(self, scenario: Scenario, program: SwitchProgram | None = None) -> None:
        refuse_unsupported(scenario)
        program = program or built_in(scenario.scheme.program, scenario.tree.half)
        self.scenario = scenario
        self.clock = Clock()
        self.switches = [_switch(scenario, switch, self.clock) for switch in range(scenario.tree.switches)]
        self.sessions = [_session(scenario, number, switch, program) for number, switch in enumerate(self.switches)]
        line = failures.timeline(scenario, traffic.flows(scenario))
        self.controller = FabricController(scenario, program.pipeline, line.first_routes)
        self.network = Network(scenario, self.switches, self.clock, outages(line.changes))
        self.network.on_drop = self._forget
        self._apply(self.controller.start())
        for change in line.changes:
            if not line.first_routes or change.time_ps:
                event = LinkChange(change.down, change.up)
                self.network.at(change.time_ps, Kind.LINK, partial(self.change_links, event))
        for route in line.routes:
            self.network.at(route.time_ps, Kind.CONTROL, partial(self._tell_hosts, route.failed))

    def change_links(self, change: LinkChange) -> None:
        """Tell the controller that links have failed or come back, and install what it decides, when it says so."""
        for step in self.controller.on_event(self.clock.now_ps, change):
            self.network.at(step.time_ps, Kind.CONTROL, partial(self._apply, (step,)))

    def run(self, horizon_ps: int | None = None, on_progress: Callable[[float], None] | None = None) -> Outcome:
        """Run until all flows are done; raises EmulationError where they are not by the horizon.

        By default that is HORIZON_BOUNDS times the least possible completion time after the last change of a link.
        """
        started = time.process_time()
        self.network.run(default_horizon_ps(self.scenario) if horizon_ps is None else horizon_ps, on_progress)
        return self.network.outcome(time.process_time() - started)

    def _forget(self, switch: int, port: int, size: int) -> None:
        """Take a tail drop out of the program's queue length at once.

        The packet never comes to egress, so that the program itself, as on BMv2, finds out when the queue is next empty;
        the run model knows no such error.
        """
        pipeline = self.switches[switch].pipeline
        assert pipeline is not None
        for array, cells in zip(pipeline.program.registers, pipeline.registers, strict=True):
            if array.name == QUEUE_LENGTHS:
                cells[port] -= size

    def _tell_hosts(self, failed: failures.Links) -> None:
        for host in self.network.hosts.values():
            if host.routes:
                host.routes.converge(failed)

    def _apply(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self.sessions[step.switch].write(step.changes)


def refuse_unsupported(scenario: Scenario) -> None:
    """Raise UnsupportedError where the scenario needs more than the virtual network offers."""
    if scenario.load_balancer.queue_staleness_ns:
        raise UnsupportedError("load_balancer.queue_staleness_ns: only the simulator ages queue lengths (--network sim)")
    if scenario.failures.local_repair:
        raise UnsupportedError("failures.local_repair: only the simulator repairs locally (--network sim)")


def _switch(scenario: Scenario, number: int, clock: Clock) -> Switch:
    draws = SwitchDraws(scenario.seed, number)
    return Switch(device_id(number), clock, draws, scenario.tree.ports(number))


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
    changes = failures.timeline(scenario, flows).changes
    bound = bound_ps(scenario, flows, paced_gaps(scenario, flows))
    return HORIZON_BOUNDS * bound + max((change.time_ps for change in changes), default=0) + int(flows.start_ps.max())


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
