"""A run of compiled programs in the simulator's windows, with stops at changes.

A change is an action at a time: a controller's update, links that break, a next plan.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Protocol

from emulation.errors import FailedRunError, ProgramError
from emulation.outcomes.complaint import complaint
from emulation.programs.probes import Timer, blank_frame, with_news
from emulation.programs.switch_program import CPU_PORT
from emulation.virtual.events import Clock, Kind
from fattree.demand.flows import Flows
from fattree.experiment.model import Scenario
from fattree.routes.demand import Demand
from fattree.routes.standstill import Watch, patience, why_still
from fattree.shape.addressing import host_ip, host_mac
from fattree.units import PS_PER_US
from hostagent.forms import Beginnings, Forms, beginnings
from hostagent.own_packet import scenario_packets
from hostagent.transports.state import NEVER
from sim.kernels.desk import Program
from sim.kernels.state import HIGHEST_PORT, MISDIRECTED, UNROUTABLE
from sim.kernels.windows import BROKEN, FINISHED, REACHED, STUCK
from sim.programs.layout import Layout, kept_bytes
from sim.programs.programmed import Observe, Programmed
from sim.runs.deadlock import deadlock, storm

# The time between reports of progress, in zero-load round trips.
RTTS_A_LEG = 4


class Machine(Protocol):
    """A program that switches run: C functions and a context for every switch."""

    # The error with which a packet has ended the run.
    error: BaseException | None

    @property
    def program(self) -> Program:
        """Return where the functions are, and the switches' contexts."""

    @property
    def layout(self) -> Layout:
        """Return the bytes of every packet that the program needs."""

    def settle(self) -> None:
        """Let packets see all that the control plane has changed."""


class TimedRun:
    """One run; `at` schedules an action, `simulate` runs to the end.

    `packets` has the results then. Edges send probes by a `timer`, if given. Raises FabricError for
    scenarios that cannot be built.
    """

    def __init__(
        self,
        demand: Demand,
        machine: Machine,
        clock: Clock,
        *,
        timer: Timer | None = None,
        sample_ps: int = 0,
        on_events: Observe | None = None,
        threads: int = 1,
    ) -> None:
        scenario = demand.scenario
        self.scenario = scenario
        self.clock = clock
        # It must live as long as its functions are called.
        self._machine = machine
        forms = scenario_packets(scenario).forms
        size = kept_bytes(scenario, machine.layout, forms)
        self.packets = Programmed(
            demand,
            machine.program,
            machine.layout,
            lambda flows: templates(scenario, flows, forms, size),
            sample_ps=sample_ps,
            on_events=on_events,
            threads=threads,
        )
        events = self.packets.network.events
        self._timer = timer
        self._turn = 0
        if timer is not None:
            self.packets.make_probes(blank_frame(scenario), CPU_PORT)

        self._watch = Watch.of(with_news(patience(scenario, events), timer))
        self._events: list[tuple[int, int, int, Callable[[], object]]] = []
        self._sequence = 0
        self._status = REACHED

    def at(self, time_ps: int, kind: Kind, action: Callable[[], object]) -> None:
        """Let something happen at a time: a link event or an act of the controller."""
        self._sequence += 1
        heappush(self._events, (time_ps, kind, self._sequence, action))

    def simulate(
        self, limit_ps: int | None = None, on_progress: Callable[[float], None] | None = None
    ) -> None:
        """Run until all flows are done.

        Raises FailedRunError where they are not by `limit_ps`, or ever (`routes.standstill`).
        """
        end_ps = NEVER if limit_ps is None else limit_ps
        leg_ps = RTTS_A_LEG * self.scenario.zero_load_rtt_ps if on_progress else NEVER
        packets = self.packets
        try:
            while True:
                self.happen()
                until_ps = min(
                    self._next_ps, end_ps + 1, packets.now_ps + leg_ps, self._watch.next_ps
                )
                status = packets.advance(until_ps)
                if on_progress:
                    on_progress(packets.progress)

                if status == FINISHED:
                    return

                self._refuse(status, end_ps)
                self._refuse_standstill()
                if status == STUCK:
                    packets.skip_to(until_ps)
        finally:
            packets.close()

    def advance(self, until_ps: int, is_late: Callable[[], bool]) -> None:
        """Let time pass to an instant, also beyond the end of all flows.

        `is_late` is asked once a round trip, and ends it before. Raises ProgramError.
        """
        packets = self.packets
        packets.outlast()
        is_stepped = False
        while True:
            self.happen()
            if packets.now_ps >= until_ps or (is_stepped and is_late()):
                return

            is_stepped = True
            next_ps = self._next_ps
            leg_ps = packets.now_ps + self.scenario.zero_load_rtt_ps
            stop_ps = min(next_ps, until_ps, leg_ps)
            self._status = packets.advance(stop_ps)
            if self._status == BROKEN:
                raise self._broken()

            if self._status == STUCK:
                packets.skip_to(min(next_ps, until_ps))

    def give_up(self, limit_ps: int) -> None:
        """Raise FailedRunError where flows cannot be complete by `limit_ps`, or ever."""
        self._refuse(self._status, limit_ps)
        self._refuse_standstill()

    def happen(self) -> None:
        """Let everything happen that is due now, after the packets that leave now."""
        now_ps = self.packets.now_ps
        self.clock.now_ps = now_ps
        if self._next_ps <= now_ps and now_ps:
            self.packets.leave_now()

        while self._events and self._events[0][0] <= now_ps:
            heappop(self._events)[-1]()

        self._machine.settle()
        # New routes hold for probes of the same instant.
        while self._timer is not None and self._timer.due_ps(self._turn) <= now_ps:
            self.packets.send_probes(self._turn % self._timer.turns)
            self._turn += 1

    @property
    def _next_ps(self) -> int:
        """Return when the next change happens or probes are sent, NEVER if neither will."""
        next_ps = self._events[0][0] if self._events else NEVER
        return min(next_ps, self._timer.due_ps(self._turn)) if self._timer else next_ps

    def _refuse(self, status: int, limit_ps: int) -> None:
        """Raise the error that ends an unfinished run: its program's, or its horizon."""
        packets = self.packets
        if status == BROKEN:
            raise self._broken()

        if packets.now_ps > limit_ps or (status == STUCK and not self._events):
            raise FailedRunError(self._unfinished(min(packets.now_ps, limit_ps)))

    def _refuse_standstill(self) -> None:
        """Raise that the run can go on for ever without an end, where that is so."""
        packets = self.packets
        watch = self._watch
        if packets.now_ps < watch.next_ps:
            return

        # The controller's next action may change everything.
        if watch.is_over(packets.now_ps, packets.standing(self._is_changing)):
            still = why_still(self.scenario, packets.network.events, watch.heard_ps)
            raise FailedRunError(f"{self._unfinished(packets.now_ps)}; {still}")

    @property
    def _is_changing(self) -> bool:
        # Probes never end: the routes' changes that they cause are in the timeline.
        return bool(self._events) and self.scenario.controller.detection != "probe"

    def _unfinished(self, now_ps: int) -> str:
        packets = self.packets
        flows = packets.network.flows
        counters = packets.world.counters
        tree = self.scenario.tree
        names = complaint(
            tree,
            [
                (int(flows.source[flow]), int(flows.destination[flow]))
                for flow in packets.unfinished.tolist()
            ],
            unroutable=int(counters[UNROUTABLE]),
            misdirected=int(counters[MISDIRECTED]),
            highest_port=int(counters[HIGHEST_PORT]),
        )
        why = storm(tree, packets.world) + deadlock(tree, packets.world)
        return f"at {now_ps / PS_PER_US:.3f} µs, {names}{why}"

    def _broken(self) -> BaseException:
        if self._machine.error is not None:
            return self._machine.error

        now_us = self.packets.now_ps / PS_PER_US
        return ProgramError(
            f"at about {now_us:.3f} µs, a host got a frame that is not its own:"
            " the program has sent it there, or changed whose it is"
        )


def templates(scenario: Scenario, flows: Flows, forms: Forms, size: int) -> Beginnings:
    """Return the first bytes of the frames of all flows."""
    tree = scenario.tree
    source, destination = flows.source, flows.destination
    # MAC addresses are made of IPv4 addresses, by addition of the same prefix for all hosts.
    prefix = host_mac(tree, 0) - host_ip(tree, 0)
    ends = (
        host_ip(tree, source) + prefix,
        host_ip(tree, destination) + prefix,
        host_ip(tree, source),
        host_ip(tree, destination),
    )
    return beginnings(ends, forms, size)
