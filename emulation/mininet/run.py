"""One run of traffic on a running Mininet network: its start, its end, its outcome."""

import sys
import time
from dataclasses import replace
from functools import partial

import numpy as np

from controller.fabric_controller import LinkChange, link_changes
from emulation.errors import FailedRunError
from emulation.mininet.agents import Columns, Report
from emulation.mininet.counting import Counted, Reading, accounts, complaint, counted, flow_result
from emulation.mininet.fabric import MininetFabric
from emulation.mininet.limits import real_patience
from emulation.outcomes.outcome import Accounts, Outcome, QueueSamples
from emulation.programs.strays import tell
from fattree.demand.flows import Flows
from fattree.experiment.model import Scenario
from fattree.experiment.pauses import is_paused
from fattree.routes.demand import Demand
from fattree.routes.standstill import NEVER, Senders, Standing, Watch, standing, why_still
from fattree.texts.storms import storm_words
from fattree.units import PS_PER_SECOND

# Between the order to start and the start: every agent must have had it by then.
LEAD_NS = 200_000_000
# A run is over when its flows are and no packet has come for so long, or for two round trips.
QUIET_PS = 10**11
# The wait at the end of a run for packets that a switch has held back, and its steps.
SETTLING_SECONDS = 5.0
SETTLING_STEP_SECONDS = 0.1
# Agents are asked so long before their answers are needed.
ANSWERING_PS = PS_PER_SECOND


def run_on(
    fabric: MininetFabric, scenario: Scenario | None = None, with_events: bool = True
) -> Outcome:
    """Run the traffic, and the link events of the experiment, until all flows are done.

    Raises FailedRunError.
    """
    run = Run(fabric, scenario or fabric.scenario)
    run.start(with_events)
    fabric.loop.run(lambda: run.is_over)

    return run.outcome()


class Run:
    """One run of traffic on a network, from its start to its outcome."""

    def __init__(self, fabric: MininetFabric, scenario: Scenario) -> None:
        self._fabric = fabric
        self.scenario = scenario
        self._demand = Demand.of(scenario)
        self._before = Reading((), ())
        # Packets carry it, so that none is counted in another run than its own.
        self.number = fabric.runs
        fabric.runs += 1
        self._cpu_seconds = 0.0
        self._watch = Watch.of(real_patience(scenario, fabric.timeline))
        self._ask_ps = self._watch.next_ps - ANSWERING_PS
        self._still = ""
        self._named: set[tuple[int, int]] = set()

    def start(self, with_events: bool) -> None:
        """Set everything going."""
        fabric = self._fabric
        quiet_ps = max(QUIET_PS, 2 * self.scenario.zero_load_rtt_ps)
        fabric.agents.arm(self.number, self.scenario, self.scenario.horizon_ps or NEVER, quiet_ps)
        fabric.agents.converge(fabric.routed, fabric.routed_slow)
        self._before = fabric.reading()
        self._cpu_seconds = fabric.cpu_seconds()
        # All slow preparations are done: the rest must be over by then.
        origin_ns = time.monotonic_ns() + LEAD_NS
        fabric.set_origin(origin_ns)

        for time_ps, change in link_changes(fabric.timeline) if with_events else ():
            # Links that routes avoid or spare from the start are down or slow already.
            event = LinkChange(change.down - fabric.failed, change.up, change.paced - fabric.slow)
            if event != LinkChange():
                fabric.call_at(time_ps, partial(fabric.change_links, event))

        fabric.agents.start(origin_ns)
        fabric.start_probes(origin_ns)

    @property
    def is_over(self) -> bool:
        """Return whether the run has ended; raises StartError where a switch has ended.

        Ends a run that stands still for good.
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

        # These are the answers to earlier requests.
        rows = self._fabric.agents.senders()
        if now_ps < watch.next_ps:
            self._ask_ps = watch.next_ps
            return

        # A change of the network by hand is progress, too.
        changes = len(self._fabric.installations)
        if watch.is_over(now_ps, _standing(now_ps, self._demand.flows, rows, changes)):
            self._still = why_still(self.scenario, self._fabric.timeline, watch.heard_ps)
            self._fabric.agents.stop()

        self._name_storms()
        self._ask_ps = watch.next_ps - ANSWERING_PS

    def _name_storms(self) -> None:
        """Say on stderr which hosts pause their links while the run goes on, each once."""
        if not is_paused(self.scenario):
            return

        ports = counted(self._fabric.tree, self._before, self._fabric.look()).ports
        for port in ports:
            end = port.switch, port.port
            warning = storm_words(self._fabric.tree, {end: port.paused_ps})
            if warning and end not in self._named:
                self._named.add(end)
                sys.stderr.write(f"{warning} so far\n")

    def outcome(self) -> Outcome:
        """Return the run's outcome; raises FailedRunError for flows that are not complete."""
        fabric = self._fabric
        fabric.stop_probes()
        report, counts, places = self._counted()

        # A switch may have woken after the hosts had stopped to listen: then packets still move.
        limit = time.monotonic() + SETTLING_SECONDS
        while places.unaccounted and time.monotonic() < limit:
            time.sleep(SETTLING_STEP_SECONDS)
            fabric.agents.ask_again()
            report, counts, places = self._counted()

        storms = storm_words(
            fabric.tree, {(port.switch, port.port): port.paused_ps for port in counts.ports}
        )
        if not report.is_finished:
            names = complaint(fabric.tree, self._demand.flows, report)
            still = "".join(f"; {reason}" for reason in (self._still, storms) if reason)
            raise FailedRunError(f"{names}{still}; {places.words()}")

        if storms:
            sys.stderr.write(f"{storms}\n")

        end_ps = max(done_ps for _, _, _, done_ps, _ in report.flows)

        return Outcome(
            demand=self._demand,
            flows=tuple(flow_result(self._demand.flows, row) for row in report.flows),
            ports=counts.ports,
            # Real queues are not looked at while they grow, and no two real runs are the same.
            samples=QueueSamples((), ()),
            accounts=places,
            digest="",
            end_ps=end_ps,
            hops=sum(port.packets for port in counts.ports),
            cpu_seconds=self._fabric.cpu_seconds() - self._cpu_seconds,
            host_paused_ps=report.counts.paused_ps,
        )

    def _counted(self) -> tuple[Report, Counted, Accounts]:
        """Return the counters of hosts and switches up to now."""
        fabric = self._fabric
        report = fabric.agents.report()
        after = fabric.look()
        counts = counted(fabric.tree, self._before, after)
        fabric.close_books(replace(after, inside=counts.inside))
        for line in {line for switch in after.again for line in switch.strays}:
            tell(line)

        # Only a switch that counts nothing itself leaves it to the controller to know.
        lost_probes = after.lost_probes - self._before.lost_probes
        unseen = lost_probes if fabric.switches.target.swallows else 0
        places = accounts(report, counts, unseen, self._before.carried, fabric.has_probes)
        return report, counts, places


def _standing(now_ps: int, flows: Flows, rows: list[list[int]], changes: int) -> Standing:
    """Return the progress of a run from the agents' reports of their senders."""
    senders = np.array(rows, dtype=np.int64).reshape(-1, len(Columns.__members__))
    progress = standing(
        now_ps,
        Senders(
            started_ps=senders[:, Columns.START],
            done_ps=senders[:, Columns.DONE],
            heard_ps=senders[:, Columns.HEARD],
            acked=senders[:, Columns.ACKED],
            tries=senders[:, Columns.TRIES],
            computes=flows.packets[senders[:, Columns.FLOW]] == 0,
        ),
        is_changing=len(senders) < len(flows),
    )
    return progress._replace(reached=progress.reached + changes)
