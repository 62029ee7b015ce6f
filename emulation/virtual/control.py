"""The switches of a scenario in virtual time, and the real controller that writes to them."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

from controller.convergence import Convergence
from controller.driver import Driver
from controller.fabric_controller import FabricController, LinkChange, Step, link_changes
from controller.liveness import liveness
from controller.local_repair import LocalAgent
from controller.session import InProcess, Session
from emulation.programs.switch_program import CPU_PORT, SwitchProgram
from emulation.virtual.events import At, Clock, Kind
from emulation.virtual.probes import VirtualProbes
from fattree.draws import Stream, component, mix
from fattree.experiment.model import Scenario
from fattree.routes.demand import Demand
from fattree.routes.failures import Links, outages
from fattree.routes.probed import Crossings
from fattree.routes.slow_links import NOT_SLOW, Slow
from fattree.shape.addressing import device_id, switch_name
from ofan_p4.softswitch.control.pipeline import Engine
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.p4runtime import P4RuntimeService, StatusError


class Writer(Protocol):
    """A receiver of a controller's changes of one switch."""

    def write(self, changes: Any) -> None:
        """Apply a batch of changes."""


class SwitchDraws:
    """A switch's random source: draw n is `mix(seed, switch's component, n)`, scaled."""

    def __init__(self, seed: int, switch: int) -> None:
        self._seed = seed
        self._component = component(Stream.SWITCH, switch)
        self._count = 0

    def __call__(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        draw = int(mix(self._seed, self._component, self._count))
        self._count += 1

        # By multiplication, as the P4 programs scale their draws: no remainder is favoured.
        return low + (draw * (high - low + 1) >> 32)


class Control:
    """Switches with their sessions, and the controller of all of them.

    `start` brings the switches to the first plan; from then on links may change. Raises FabricError
    and ControllerError for scenarios that cannot be built.
    """

    def __init__(
        self,
        scenario: Scenario,
        program: SwitchProgram,
        clock: Clock,
        engine: Engine = "auto",
        demand: Demand | None = None,
    ) -> None:
        self.scenario = scenario
        self.clock = clock
        self.switches = [
            _switch(scenario, switch, clock, engine) for switch in range(scenario.tree.switches)
        ]
        self.sessions = [
            _session(scenario, number, switch, program)
            for number, switch in enumerate(self.switches)
        ]
        self._writers: list[Writer] = [
            LocalAgent(session) if scenario.failures.local_repair else session
            for session in self.sessions
        ]

        # A controller that gets announcements begins with the routes of failures at time 0; a
        # controller that probes has to detect them.
        self.demand = demand or Demand.of(scenario)
        self.line = self.demand.events
        self._first_routes = self.line.first_routes if self.is_announced else frozenset()
        self._first_slow = self.line.first_slow if self.is_announced else NOT_SLOW
        self.controller = FabricController(
            scenario, program.pipeline, self._first_routes, self._first_slow
        )

    def start(
        self,
        schedule: At,
        tell_hosts: Callable[[Links, Slow], object],
    ) -> None:
        """Write the first plan, inform hosts, and let links change at the scenario's times.

        `schedule` schedules an action.
        """
        self._driver = Driver(
            self.controller,
            clock=self.clock,
            at=lambda time_ps, action: schedule(time_ps, Kind.CONTROL, action),
            write=self._write,
            tell_hosts=tell_hosts,
        )
        self._driver.start()
        tell_hosts(self._first_routes, self._first_slow)

        for time_ps, event in link_changes(self.line):
            # The controller starts with changes of time 0; it must not hear of them twice.
            is_known = time_ps == 0 and bool(self._first_routes or self._first_slow)
            schedule(time_ps, Kind.LINK, partial(self.links_change, event, is_known))

    def probe(
        self,
        schedule: At,
        depth: Callable[[int, int], int],
    ) -> None:
        """Let the controller probe links, where the scenario asks for it (`VirtualProbes`)."""
        probing = liveness(self.scenario)
        if probing:
            VirtualProbes(
                schedule,
                self.clock,
                Crossings(self.scenario, outages(self.line.changes)),
                depth,
                switches=self.switches,
                sessions=self.sessions,
                liveness=probing,
                on_change=self.change_links,
            )

    @property
    def installations(self) -> list[Convergence]:
        """Return the progress of the changes that the controller knows of."""
        return self._driver.installations

    @property
    def is_announced(self) -> bool:
        """Return whether the network announces its failures to the controller."""
        return self.scenario.controller.detection == "announced"

    def links_change(self, change: LinkChange, is_known: bool = False) -> None:
        """Let switches, and in an announced world the controller, know of changed links."""
        self._driver.note(change.down | change.up | {slow.link for slow in change.paced})
        for link in sorted(change.down | change.up):
            for end in self.scenario.tree.link_ends(link):
                writer = self._writers[end.switch]
                if isinstance(writer, LocalAgent):
                    writer.set_port(end.port, link in change.up)

        if self.is_announced and not is_known:
            self.change_links(change)

    def change_links(self, change: LinkChange) -> None:
        """Announce changed links to the controller; its decisions take effect when they are due."""
        self._driver.learn(change)

    def _write(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self._writers[step.switch].write(step.changes)


def _switch(scenario: Scenario, number: int, clock: Clock, engine: Engine) -> Switch:
    draws = SwitchDraws(scenario.seed, number)
    cpu_port = CPU_PORT if scenario.controller.detection == "probe" else None
    return Switch(
        device_id(number),
        clock,
        random=draws,
        ports=scenario.tree.ports(number),
        cpu_port=cpu_port,
        engine=engine,
    )


def _session(scenario: Scenario, number: int, switch: Switch, program: SwitchProgram) -> Session:
    transport = InProcess(P4RuntimeService(switch), StatusError)
    name = switch_name(scenario.tree, number)
    session = Session(transport, program.pipeline, device_id(number), name)
    session.open()
    session.push(program.bmv2_json)

    return session
