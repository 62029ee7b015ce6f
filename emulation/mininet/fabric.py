"""A Mininet network in real time: switch processes, agents, and the controller over gRPC.

It is the twin of `emulation.virtual.fabric`: the same scenario, the same controller and host rules,
the same outcome; time is CLOCK_MONOTONIC since the run's start, as integer picoseconds.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from controller.convergence import Convergence
from controller.driver import Driver, OnInstalled
from controller.entries import Entries
from controller.fabric_controller import FabricController, LinkChange, link_changes
from controller.fleet import PATIENCE_S, Access, Fleet
from controller.grpc_transport import GrpcTransport
from controller.session import Session
from emulation.errors import FailedRunError
from emulation.mininet.agents import Agents, Columns, Report
from emulation.mininet.counting import (
    Counted,
    Reading,
    accounts,
    complaint,
    counted,
    flow_result,
    process_seconds,
)
from emulation.mininet.detection import Listening, Probing, detector, monotonic_ps
from emulation.mininet.limits import real_patience
from emulation.mininet.loop import Action, Loop
from emulation.mininet.switch_processes import Switches, listens, set_link
from emulation.mininet.targets.target import address
from emulation.outcomes.outcome import Accounts, Outcome, QueueSamples
from emulation.programs.switch_program import SwitchProgram
from fattree import traffic
from fattree.addressing import switch_name
from fattree.experiment import Scenario
from fattree.failures import Links, Timeline, timeline
from fattree.flows import Flows
from fattree.slow_links import NOT_SLOW, Slow, after, host_shares
from fattree.standstill import NEVER, Senders, Standing, Watch, standing, why_still
from fattree.topology import FatTree, LinkEnd
from fattree.units import PS_PER_NS, PS_PER_SECOND

# Between the order to start and the start: every agent must have had it by then.
LEAD_NS = 200_000_000
# A run is over when its flows are and no packet has come for so long, or for two round trips.
QUIET_PS = 10**11
# How long one waits at its end for packets that a switch has held back, and in which steps.
SETTLING_SECONDS = 5.0
SETTLING_STEP_SECONDS = 0.1
# How soon one looks whether a lost switch has been reached.
LOOK_AGAIN_NS = 50_000_000
# Agents are asked so long before their answers are needed.
ANSWERING_PS = PS_PER_SECOND
# Leaves room for a shell that only reads (a lower id) and one that takes over (a higher one).
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
    ) -> None:
        self.scenario = scenario
        self.tree: FatTree = scenario.tree
        self.loop = loop
        self.switches = switches
        self.agents = agents
        self.folder = folder
        self.timeline: Timeline = timeline(scenario, traffic.flows(scenario))
        is_announced = scenario.controller.detection == "announced"
        self.failed = self.timeline.first_routes
        self.slow = self.timeline.first_slow
        routed = self.failed if is_announced else frozenset()
        spared = self.slow if is_announced else NOT_SLOW
        self.access = _access(scenario, program, folder, election_id)
        self._driver = Driver(
            FabricController(scenario, program.pipeline, routed, spared),
            clock=monotonic_ps,
            at=self._at,
            write=lambda steps: self.fleet.write(steps),
            tell_hosts=agents.converge,
        )
        self.fleet = Fleet(self.controller, self.access)
        self.on_news: Callable[[str], object] = lambda _line: None
        self.is_announced = is_announced
        self._looks_again = False
        self.runs = 0
        self._reading: Reading | None = None
        self._detector: Probing | Listening | None = None
        self._driver.set_origin(monotonic_ps())

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
        """Return what has become of the changes that the controller knows of."""
        return self._driver.installations

    @property
    def sessions(self) -> list[Session]:
        """Return the sessions with the switches."""
        return self.fleet.sessions

    def now_ps(self) -> int:
        """Return the time since the start of the run."""
        return self._driver.now_ps()

    def connect(self) -> None:
        """Open all sessions, push the program, install the first plan, and watch the links.

        Raises the SwitchError of a switch that cannot be had.
        """
        self.fleet.open()
        for link in sorted(self.failed):
            set_link(self.scenario, link, False, self.switches.target)

        self._set_rates(self.slow)
        for host, share in host_shares(self.scenario, is_up=False).items():
            self.switches.set_rate(LinkEnd(*self.tree.access(host)), share)

        # A switch that is lost later is left out; a network that begins is whole.
        self._driver.start()
        for error in self.fleet.lost.values():
            raise error

        self.fleet.patience_s = PATIENCE_S

        self._detector = detector(
            self.scenario,
            fleet=self.fleet,
            loop=self.loop,
            failed=self.routed,
            on_change=self.learn,
        )

    def restart_controller(self) -> None:
        """Begin again with a controller that remembers nothing, as after a crash.

        It reads back what the switches hold.

        One that probes leaves them alone until it has heard from every link.
        """
        # The higher election id wins, even where a switch has not noticed that the old one is gone.
        self.close()
        election_id = max(session.election_id for session in self.sessions) + 1
        self.access = replace(self.access, election_id=election_id)
        self._driver.controller = FabricController(
            self.scenario,
            self.access.pipeline,
            self.failed if self.is_announced else (),
            self.slow if self.is_announced else NOT_SLOW,
        )
        self.fleet = Fleet(self.controller, self.access, patience_s=PATIENCE_S)
        self.fleet.open()
        self._detector = detector(
            self.scenario,
            fleet=self.fleet,
            loop=self.loop,
            failed=frozenset(),
            on_change=self.learn,
        )

        sure_ps = self._detector.sure_ps if self._detector else 0
        self._at(monotonic_ps() + sure_ps, self._driver.start)

    def close(self) -> None:
        """End the sessions."""
        if self._detector is not None:
            self._detector.close()

        self.fleet.close()

    def tend(self) -> None:
        """Look after switches that have ended, do not answer, or obey somebody else.

        Raises StartError for a switch that has ended and is not to be restarted, CallError where
        one refuses its plan.
        """
        processes = self.switches.processes
        if not self.switches.may_restart:
            processes.refuse_dead()

        processes.listen()
        for name in list(processes.exited):
            self.on_news(f"{self.switches.restart(name)}; it is started again")

        # Only what is new is told.
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

        Return what becomes of it where the controller is told, else None.

        `on_installed` is called when the routes follow, whoever finds out how.
        """
        # Noted one by one, just before it happens: each is a process of its own, which takes time.
        for link in sorted(change.down | change.up):
            self._driver.note((link,))
            set_link(self.scenario, link, link in change.up, self.switches.target)

        self.failed = self.failed - change.up | change.down
        self._driver.note(one.link for one in change.paced)
        self._set_rates(change.paced)
        self.slow = after(self.slow, change.paced)
        if on_installed:
            self._driver.when_followed(change, on_installed)

        return self.learn(change) if self.is_announced else None

    def _set_rates(self, links: Slow) -> None:
        for one in sorted(links):
            for end, share in zip(self.tree.link_ends(one.link), one[1:], strict=True):
                self.switches.set_rate(end, share)

    def learn(self, change: LinkChange) -> Convergence:
        """Tell the controller that links have changed; what it decides is installed when due."""
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
        found = self.fleet.ask(self._read, asked)
        for switch in switches:
            if switch in self.fleet.lost:
                raise FailedRunError(str(self.fleet.lost[switch]))

        return found

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

    def run(self, scenario: Scenario | None = None, with_events: bool = True) -> Outcome:
        """Run the traffic, and the link events of the experiment, until all flows are done.

        Raises FailedRunError.
        """
        run = Run(self, scenario or self.scenario)
        run.start(with_events)
        self.loop.run(lambda: run.is_over)

        return run.outcome()

    def call_at(self, time_ps: int, action: Action) -> None:
        """Call `action` at a time of the run."""
        self._at(self._driver.origin_ps + time_ps, action)

    def _at(self, time_ps: int, action: Action) -> None:
        # Rounded up: whoever asks to be called at an instant is not called before it.
        self.loop.at(-(-time_ps // PS_PER_NS), action)

    def set_origin(self, origin_ns: int) -> None:
        """Make an instant of CLOCK_MONOTONIC the run's time 0."""
        self._driver.set_origin(origin_ns * PS_PER_NS)

    def cpu_seconds(self) -> float:
        """Return the processor time that all processes of the network have used."""
        pids = [*self.switches.processes.pids.values(), *self.agents.pids]
        return time.process_time() + sum(map(process_seconds, pids))


class Run:
    """One run of traffic on a network, from its start to its outcome."""

    def __init__(self, fabric: MininetFabric, scenario: Scenario) -> None:
        self._fabric = fabric
        self.scenario = scenario
        self._flows = traffic.flows(scenario)
        self._before = Reading((), ())
        # Packets carry it, so that none is counted in another run than its own.
        self.number = fabric.runs
        fabric.runs += 1
        self._cpu_seconds = 0.0
        self._watch = Watch.of(real_patience(scenario, fabric.timeline))
        self._ask_ps = self._watch.next_ps - ANSWERING_PS
        self._still = ""

    def start(self, with_events: bool) -> None:
        """Set everything going."""
        fabric = self._fabric
        quiet_ps = max(QUIET_PS, 2 * self.scenario.zero_load_rtt_ps)
        fabric.agents.arm(self.number, self.scenario, self.scenario.horizon_ps or NEVER, quiet_ps)
        fabric.agents.converge(fabric.routed, fabric.routed_slow)
        self._before = fabric.reading()
        self._cpu_seconds = fabric.cpu_seconds()
        # Everything slow is done: what comes now must be over by then.
        origin_ns = time.monotonic_ns() + LEAD_NS
        fabric.set_origin(origin_ns)

        for time_ps, change in link_changes(fabric.timeline) if with_events else ():
            # Links that routes avoid or spare from the start are down or slow already.
            event = LinkChange(change.down - fabric.failed, change.up, change.paced - fabric.slow)
            if event != LinkChange():
                fabric.call_at(time_ps, partial(fabric.change_links, event))

        fabric.agents.start(origin_ns)

    @property
    def is_over(self) -> bool:
        """Return whether the run has ended; raises StartError where a switch has.

        Ends one that stands still for good.
        """
        self._fabric.tend()
        self._look()
        return self._fabric.agents.have_reported()

    def _look(self) -> None:
        """See now and then whether the run still progresses."""
        watch = self._watch
        now_ps = self._fabric.now_ps()
        if self._still or now_ps < self._ask_ps:
            return

        # What is looked at are the answers that come a while after one has asked.
        rows = self._fabric.agents.senders()
        if now_ps < watch.next_ps:
            self._ask_ps = watch.next_ps
            return

        # What somebody does to the network by hand is progress, too.
        changes = len(self._fabric.installations)
        if watch.is_over(now_ps, _standing(now_ps, self._flows, rows, changes)):
            self._still = why_still(self.scenario, self._fabric.timeline, watch.heard_ps)
            self._fabric.agents.stop()

        self._ask_ps = watch.next_ps - ANSWERING_PS

    def outcome(self) -> Outcome:
        """Return what the run has shown; raises FailedRunError for flows that are not complete."""
        fabric = self._fabric
        report, found, places = self._counted()

        # A switch may have woken after the hosts had stopped to listen: then packets still move.
        limit = time.monotonic() + SETTLING_SECONDS
        while places.unaccounted and time.monotonic() < limit:
            time.sleep(SETTLING_STEP_SECONDS)
            fabric.agents.ask_again()
            report, found, places = self._counted()

        if not report.is_finished:
            names = complaint(fabric.tree, self._flows, report)
            still = f"; {self._still}" if self._still else ""
            raise FailedRunError(f"{names}{still}; {places.words()}")

        end_ps = max(done_ps for _, _, _, done_ps, _ in report.flows)

        return Outcome(
            scenario=self.scenario,
            flows=tuple(flow_result(self._flows, row) for row in report.flows),
            ports=found.ports,
            # Real queues are not looked at while they grow, and no two real runs are the same.
            samples=QueueSamples((), ()),
            accounts=places,
            digest="",
            end_ps=end_ps,
            hops=sum(port.packets for port in found.ports),
            freezes=report.freezes,
            cpu_seconds=self._fabric.cpu_seconds() - self._cpu_seconds,
        )

    def _counted(self) -> tuple[Report, Counted, Accounts]:
        """Return what hosts and switches have counted up to now."""
        fabric = self._fabric
        report = fabric.agents.report()
        after = fabric.look()
        found = counted(fabric.tree, self._before, after)
        fabric.close_books(replace(after, inside=found.inside))

        # Only a switch that counts nothing itself leaves it to the controller to know.
        lost_probes = after.lost_probes - self._before.lost_probes
        unseen = lost_probes if fabric.switches.target.swallows else 0
        return report, found, accounts(report, found, unseen, self._before.carried)


def _standing(now_ps: int, flows: Flows, rows: list[list[int]], changes: int) -> Standing:
    """Return how far a run is, by what the agents say of their senders."""
    known = np.array(rows, dtype=np.int64).reshape(-1, len(Columns.__members__))
    found = standing(
        now_ps,
        Senders(
            started_ps=known[:, Columns.START],
            done_ps=known[:, Columns.DONE],
            heard_ps=known[:, Columns.HEARD],
            acked=known[:, Columns.ACKED],
            sent=known[:, Columns.SENT],
            computes=flows.packets[known[:, Columns.FLOW]] == 0,
        ),
        is_changing=len(known) < len(flows),
    )
    return found._replace(reached=found.reached + changes)


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
