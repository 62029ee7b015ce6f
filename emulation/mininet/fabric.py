"""A Mininet network in real time: switch processes, agents, and the controller over gRPC.

It is the twin of `emulation.virtual.fabric`: the same scenario, the same controller and host rules,
the same outcome; time is CLOCK_MONOTONIC since the run's start, as integer picoseconds.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from controller.convergence import Convergence
from controller.driver import Driver, OnInstalled
from controller.entries import Entries
from controller.fabric_controller import FabricController, LinkChange, Step
from controller.fleet import PATIENCE_S, Access, Fleet
from controller.grpc_transport import GrpcTransport
from controller.routed import ReportedController, RoutedDriver
from controller.session import Session
from emulation.errors import FailedRunError
from emulation.mininet.agents import Agents
from emulation.mininet.bgp.convergence import await_routes
from emulation.mininet.bgp.planners import Planners
from emulation.mininet.bgp.routers import Routers
from emulation.mininet.counting import Reading, process_seconds
from emulation.mininet.detection import Listening, Probing, detector, monotonic_ps
from emulation.mininet.loop import Action, Loop
from emulation.mininet.probes import edge_probes
from emulation.mininet.switch_processes import Switches, listens, set_link
from emulation.mininet.targets.target import address
from emulation.programs.switch_program import SwitchProgram
from fattree.demand import traffic
from fattree.experiment.model import Scenario
from fattree.routes.failures import Links, Timeline, timeline
from fattree.routes.slow_links import NOT_SLOW, Slow, after, host_shares
from fattree.shape.addressing import switch_name
from fattree.shape.topology import FatTree, LinkEnd
from fattree.units import PS_PER_NS

# The interval of looks at the calls to lost switches.
LOOK_AGAIN_NS = 50_000_000
# Leaves room for a shell that only reads (a lower id) and a shell that takes over (a higher id).
ELECTION_ID = 1000


class MininetFabric:
    """The running network of one scenario; made by `emulation.mininet.building`.

    `failed` are the links that are down, `slow` those that run at a share of their rate, `routed`
    those that the switches' routes avoid. A switch that ends ends the run, unless
    `switches.may_restart`: then it is started again and brought back to the plan. `on_news` gets a
    line about such things.
    """

    def __init__(
        self,
        scenario: Scenario,
        loop: Loop,
        switches: Switches,
        agents: Agents,
        program: SwitchProgram,
        folder: Path,
        election_id: int = ELECTION_ID,
        routers: Routers | None = None,
    ) -> None:
        self.scenario = scenario
        self.tree: FatTree = scenario.tree
        self.loop = loop
        self.switches = switches
        self.agents = agents
        self.folder = folder
        self.timeline: Timeline = timeline(scenario, traffic.flows(scenario))
        # BGP finds out by itself; the controller's own detection is left out.
        is_announced = scenario.controller.detection == "announced" and routers is None
        self.failed = self.timeline.first_routes
        self.slow = self.timeline.first_slow
        routed = self.failed if is_announced else frozenset()
        spared = self.slow if is_announced else NOT_SLOW
        self.access = _access(scenario, program, folder, election_id)
        self.routers = routers
        self._driver = self._drive(
            FabricController(scenario, program.pipeline, routed, spared)
            if routers is None
            else ReportedController(scenario, program.pipeline)
        )
        # Under BGP each switch has a controller of its own, and the fabric only reads.
        self._planners = (
            Planners(scenario, routers, self.access, loop, self._driver.follow)
            if routers is not None and isinstance(self._driver, RoutedDriver)
            else None
        )
        self.fleet = Fleet(self.controller, self.access)
        # A controller that restarts has another fleet.
        self._probes = edge_probes(scenario, program, loop, fleet=lambda: self.fleet)
        self.on_news: Callable[[str], object] = lambda _line: None
        self.is_announced = is_announced
        self._looks_again = False
        self.runs = 0
        self._reading: Reading | None = None
        self._detector: Probing | Listening | None = None
        self._driver.set_origin(monotonic_ps())

    def _drive(self, controller: FabricController) -> Driver:
        # Looked up when steps are due: a controller that restarts has another fleet.
        def write(steps: Sequence[Step]) -> None:
            self.fleet.write(steps)

        hosts = self.agents.converge
        if isinstance(controller, ReportedController):
            return RoutedDriver(controller, monotonic_ps, tell_hosts=hosts)

        return Driver(controller, clock=monotonic_ps, at=self._at, write=write, tell_hosts=hosts)

    @property
    def controller(self) -> FabricController:
        """Return the controller that is in charge now."""
        return self._driver.controller

    @property
    def routed(self) -> Links:
        """Return the links that the switches' routes avoid."""
        return self._driver.routed

    @property
    def routed_slow(self) -> Slow:
        """Return the slow links that the switches' routes spare."""
        return self._driver.routed_slow

    @property
    def installations(self) -> list[Convergence]:
        """Return the changes that the controller knows of, with their times."""
        return self._driver.installations

    @property
    def sessions(self) -> dict[int, Session]:
        """Return the sessions with the switches, by number."""
        return self.fleet.sessions

    def now_ps(self) -> int:
        """Return the time since the start of the run."""
        return self._driver.now_ps()

    def connect(self) -> None:
        """Open all sessions, push the program, install the first plan, and watch the links.

        Raises the SwitchError of a switch that cannot be had.
        """
        if self._planners is None:
            self.fleet.open()
        else:
            self.fleet.connect()

        for link in sorted(self.failed):
            self._set_link(link, False)

        self._set_rates(self.slow)
        for host, share in host_shares(self.scenario, is_up=False).items():
            self.switches.set_rate(LinkEnd(*self.tree.access(host)), share)

        if self.routers is not None and self._planners is not None:
            await_routes(self.routers, self.failed)
            self._planners.start()

        # A switch that is lost later is left out; a network that begins is whole.
        self._driver.start()
        for error in self.fleet.lost.values():
            raise error

        self.fleet.patience_s = PATIENCE_S

        self._detector = self._detect(self.routed)

    def _detect(self, failed: Links) -> Probing | Listening | None:
        return detector(
            self.scenario, fleet=self.fleet, loop=self.loop, failed=failed, on_change=self.learn
        )

    def _set_link(self, link: int, is_up: bool) -> None:
        """Break or mend a link, and the link of the routers beside it."""
        set_link(self.scenario, link, is_up, self.switches.target)
        if self.routers is not None:
            self.routers.set_link(link, is_up)

    def restart_controller(self) -> None:
        """Replace the controller by a new one without memory, as after a crash; planners, too.

        It reads back the switches' entries.

        A controller that probes does not write to them before probes of every link have arrived.
        """
        if self._planners is not None:
            self._planners.restart()
            return

        # The higher election id wins, even where a switch has not noticed the old controller's end.
        self.close()
        election_id = max(session.election_id for session in self.sessions.values()) + 1
        self.access = replace(self.access, election_id=election_id)
        self._driver.controller = FabricController(
            self.scenario,
            self.access.pipeline,
            self.failed if self.is_announced else (),
            self.slow if self.is_announced else NOT_SLOW,
        )
        self.fleet = Fleet(self.controller, self.access, patience_s=PATIENCE_S)
        self.fleet.open()
        self._detector = self._detect(frozenset())
        sure_ps = self._detector.sure_ps if self._detector else 0
        self._at(monotonic_ps() + sure_ps, self._driver.start)

    def close(self) -> None:
        """End the sessions."""
        for part in (self._detector, self._planners):
            if part is not None:
                part.close()

        self.fleet.close()

    def tend(self) -> None:
        """Restart or refill switches that have ended, do not answer, or have another controller.

        Raises StartError for a switch that has ended and is not to be restarted, CallError where
        one refuses its plan.
        """
        processes = self.switches.processes
        if not self.switches.may_restart:
            processes.refuse_dead()

        processes.listen()
        for name in list(processes.exited):
            self.on_news(f"{self.switches.restart(name)}; it is started again")

        if self._planners is None:
            self._tend_sessions()
        else:
            self._tend_planners(self._planners)

    def _tend_planners(self, planners: Planners) -> None:
        for line in planners.tend(self.switches.may_restart):
            self.on_news(line)

        # A switch that its planner reaches is late only for once.
        self.fleet.lost.update(planners.lost)
        for switch in self.fleet.lost.keys() - planners.lost.keys():
            self.fleet.reconnect(switch)

    def _tend_sessions(self) -> None:
        # Only new losses are reported.
        lost = set(self.fleet.lost)
        back = self.fleet.poll(monotonic_ps())
        for switch in sorted(set(self.fleet.lost) - lost):
            self.on_news(f"{self.fleet.lost[switch]}; the others go on")

        for switch, updates in back.items():
            name = switch_name(self.tree, switch)
            self.on_news(f"{name} is back: {updates} updates have brought it to the plan")

        # Threads try to reach it; nothing else would wake the loop when they do.
        if self.fleet.lost and not self._looks_again:
            self._looks_again = True
            self.loop.at(time.monotonic_ns() + LOOK_AGAIN_NS, self._look_again)

    def _look_again(self) -> None:
        self._looks_again = False

    def change_links(
        self, change: LinkChange, on_installed: OnInstalled | None = None
    ) -> Convergence | None:
        """Break and mend links in the kernel, and let switches send slower or faster.

        Return the change's times where it is announced to the controller, else None.

        `on_installed` is called when the routes follow, however the change is detected.
        """
        # Noted one by one, just before it happens: each is a process of its own, which takes time.
        for link in sorted(change.down | change.up):
            self._driver.note((link,))
            self._set_link(link, link in change.up)

        self.failed = self.failed - change.up | change.down
        self._driver.note(slow_link.link for slow_link in change.paced)
        self._set_rates(change.paced)
        self.slow = after(self.slow, change.paced)
        if on_installed:
            self._driver.when_followed(change, on_installed)

        if isinstance(self._driver, RoutedDriver):
            return self._driver.begin(change, self.failed)

        return self.learn(change) if self.is_announced else None

    def _set_rates(self, links: Slow) -> None:
        for slow_link in sorted(links):
            for end, share in zip(self.tree.link_ends(slow_link.link), slow_link[1:], strict=True):
                self.switches.set_rate(end, share)

    def learn(self, change: LinkChange) -> Convergence:
        """Report changed links to the controller; its steps are installed when they are due."""
        return self._driver.learn(change)

    def lost_probes(self) -> int:
        """Return how many packets of the controller's own have been lost on links so far."""
        return self._detector.lost() if self._detector else 0

    def entries(self, switch: int) -> Entries:
        """Return the entries that a switch holds, read back from it.

        Raises FailedRunError where it does not answer.
        """
        return self.all_entries((switch,))[switch]

    def all_entries(self, switches: Iterable[int]) -> dict[int, Entries]:
        """Return the entries that switches hold, read back from them side by side.

        Raises FailedRunError where one of them does not answer.
        """
        asked = [switch for switch in switches if switch not in self.fleet.lost]
        entries = self.fleet.ask(self._read, asked)
        for switch in switches:
            if switch in self.fleet.lost:
                raise FailedRunError(str(self.fleet.lost[switch]))

        return entries

    def held_entries(self) -> dict[int, Entries]:
        """Return the entries of all switches that can be reached."""
        return self.fleet.ask(
            self._read,
            [switch for switch in range(self.tree.switches) if switch not in self.fleet.lost],
        )

    def _read(self, switch: int) -> Entries:
        return {
            (entry.table, entry.key): (entry.action, entry.arguments)
            for entry in self.sessions[switch].read()
        }

    def reading(self) -> Reading:
        """Return the counters from which a run counts.

        Where the network still has packets of earlier runs, it is from when these ended.
        """
        if self._reading is not None and self._reading.carried:
            return self._reading

        lost_probes = self.lost_probes()
        return self._look(lost_probes, (0,) * self.tree.switches)

    def look(self) -> Reading:
        """Return the counters of this moment."""
        return self._look(self.lost_probes(), ())

    def _look(self, lost_probes: int, inside: tuple[int, ...]) -> Reading:
        return Reading(
            self.switches.counters(), self.switches.counters(), inside, lost_probes=lost_probes
        )

    def close_books(self, reading: Reading) -> None:
        """Note the counters with which a run has ended."""
        self._reading = reading

    def call_at(self, time_ps: int, action: Action) -> None:
        """Call `action` at a time of the run."""
        self._at(self._driver.origin_ps + time_ps, action)

    def _at(self, time_ps: int, action: Action) -> None:
        # Rounded up: no action happens before its time.
        self.loop.at(-(-time_ps // PS_PER_NS), action)

    def set_origin(self, origin_ns: int) -> None:
        """Make an instant of CLOCK_MONOTONIC the run's time 0."""
        self._driver.set_origin(origin_ns * PS_PER_NS)

    def start_probes(self, origin_ns: int) -> None:
        """Let edges send the program's probes, if any, from a run's time 0 on."""
        if self._probes is not None:
            self._probes.start(origin_ns)

    @property
    def has_probes(self) -> bool:
        """Return whether edges send probes of the program."""
        return self._probes is not None

    def stop_probes(self) -> None:
        """Let edges send no more probes, so that those under way can be counted."""
        if self._probes is not None:
            self._probes.stop()

    def cpu_seconds(self) -> float:
        """Return the processor time that all processes of the network have used."""
        pids = [*self.switches.processes.pids.values(), *self.agents.pids]
        pids += self.routers.processes.pids.values() if self.routers else ()
        return time.process_time() + sum(map(process_seconds, pids))


def _access(scenario: Scenario, program: SwitchProgram, folder: Path, election_id: int) -> Access:
    """Return how to get at the switches of a network."""

    def connect(switch: int) -> GrpcTransport:
        return GrpcTransport(address(folder, switch_name(scenario.tree, switch)))

    def is_reachable(switch: int) -> bool:
        return listens(folder / f"{switch_name(scenario.tree, switch)}.grpc")

    return Access(
        program.bmv2_json,
        pipeline=program.pipeline,
        connect=connect,
        is_reachable=is_reachable,
        election_id=election_id,
    )
