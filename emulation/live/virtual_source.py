"""A run in virtual time at a chosen speed; links can be broken while it runs.

Events that are clicked happen at the virtual time of the click; everything else is the run that
`ofan emulate` makes.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from controller.fabric_controller import LinkChange
from emulation.live.model import (
    FlowReading,
    Header,
    Observer,
    PortReading,
    Reading,
    Snapshot,
)
from emulation.live.source import LiveError
from emulation.outcomes.changes import changes_of
from emulation.programs.own_program import Loaded
from emulation.virtual.events import Kind
from emulation.virtual.fabric import VirtualFabric
from fattree.demand import traffic
from fattree.experiment.model import Scenario
from fattree.policies import POLICIES
from fattree.routes import failures
from fattree.routes.bounds import bound_ps
from fattree.routes.slow_links import NOT_SLOW, RateChange, Slow, SlowLink, after, at_rate
from fattree.shape.addressing import link_name, link_named
from fattree.units import PS_PER_SECOND
from hostagent.build import paced_gaps
from hostagent.transports.state import NEVER

DEMO_SECONDS = 15.0
WINDOW_SECONDS = 0.7
# A window for loads holds at least so many packets, or loads would jump between 0 and 1.
SHORTEST_WINDOW_SLOTS = 12
# The longest time of a poll: with ten polls a second there is time left for commands.
BUDGET_SECONDS = 0.06
EVENTS_AT_ONCE = 200
SLICES_OF_A_WINDOW = 2
FACTORS = (0.01, 100.0)
# The weight of one poll in the reached speed, and the share of the asked speed from which on a
# machine keeps up.
NEWS = 0.1
KEPT_UP = 0.85
Clock = Callable[[], float]


class Pace:
    """Virtual time against a clock's: `speed` virtual seconds a second, from where it was set."""

    def __init__(self, speed: float, clock: Clock) -> None:
        self._clock = clock
        self.begin(0, speed)

    def begin(self, now_ps: int, speed: float, is_paused: bool = False) -> None:
        """Go at a speed from a virtual time on, or stand there."""
        self.speed = speed
        self.is_paused = is_paused
        self.set_now(now_ps)
        self._seen = (self._origin_s, now_ps)
        self._kept = 1.0

    def set_now(self, now_ps: int) -> None:
        """Go on from a virtual time."""
        self._origin_ps = now_ps
        self._origin_s = self._clock()

    def target_ps(self) -> int:
        """Return the virtual time that should have been reached now."""
        self._asked_s = self._clock()
        if self.is_paused:
            return self._origin_ps

        return self._origin_ps + round(
            (self._asked_s - self._origin_s) * self.speed * PS_PER_SECOND
        )

    def heed(self, now_ps: int) -> None:
        """Take the virtual time that has come of the last target."""
        seen_s, seen_ps = self._seen
        asked_ps = (self._asked_s - seen_s) * self.speed * PS_PER_SECOND
        if asked_ps > 0:
            # One late poll among many is no news.
            self._kept += NEWS * ((now_ps - seen_ps) / asked_ps - self._kept)

        self._seen = (self._asked_s, now_ps)

    @property
    def reached(self) -> float | None:
        """Return the speed that was lately reached where it is below the asked speed."""
        return self.speed * self._kept if self._kept < KEPT_UP else None


def default_speed(scenario: Scenario, seconds: float = DEMO_SECONDS) -> float:
    """Return the speed at which the least possible run after the last event takes so long."""
    flows = traffic.flows(scenario)
    last_ps = max(
        (change.time_ps for change in failures.timeline(scenario, flows).changes), default=0
    )
    return (
        (bound_ps(scenario, flows, paced_gaps(scenario, flows)) + last_ps) / PS_PER_SECOND / seconds
    )


class VirtualSource:
    """Steps a scenario's run.

    `start` begins it again; links that were clicked broken or slow are so from its start.
    """

    def __init__(
        self,
        scenario: Scenario,
        speed: float | None = None,
        own: Loaded | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        # The user's load balancers have the names of their files, which no load balancer of ours
        # has.
        ours = {slug: policy.label for slug, policy in POLICIES.items()}
        self.policies = {scenario.balancer: scenario.balancer_label} | ours
        self.pace = Pace(speed or default_speed(scenario), clock)
        self._first = scenario
        self._base_speed, self._factor = self.pace.speed, 1.0
        self._own = own
        self._clock = clock
        self._clicked: set[int] = set()
        self._clicked_slow: Slow = NOT_SLOW
        self._begin(scenario)

    def _begin(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self._flows = traffic.flows(scenario)
        program = self._own if scenario.program else None
        self._fabric = VirtualFabric(scenario, program.program if program else None)
        self._network = self._fabric.network
        self._failed: frozenset[int] = frozenset()
        self._slow: Slow = NOT_SLOW
        self._busy_ps = 0
        window_ps = max(
            self.pace.speed * WINDOW_SECONDS * PS_PER_SECOND,
            SHORTEST_WINDOW_SLOTS * scenario.slot_ps,
        )

        self._observer = Observer(scenario, round(window_ps))
        line = failures.timeline(scenario, self._flows)
        for change in line.changes:
            self._network.at(change.time_ps, Kind.LINK, partial(self._follow_file, change))
        for rates in line.rates:
            self._network.at(rates.time_ps, Kind.LINK, partial(self._follow_rates, rates))

        if self._clicked or self._clicked_slow:
            self._change_from_the_start()

        self.pace.begin(0, self.pace.speed)

    def _follow_file(self, change: failures.LinkChange) -> None:
        """Let an event of the file replace earlier clicks: the last change counts."""
        # Ports know the file's events beforehand, unless a click has changed their forecast.
        self._network.set_links(change.down, up=False)
        self._network.set_links(change.up, up=True)
        self._failed = self._failed - change.up | change.down

    def _follow_rates(self, change: RateChange) -> None:
        self._slow = after(self._slow, change.links)

    def _change_from_the_start(self) -> None:
        # Clicks of an earlier run are known to this run: its routes heed them from time 0 on, also
        # with a long G.
        controller = self._fabric.controller
        usual_ps = controller.convergence_ps
        controller.convergence_ps = None if usual_ps is None else 0
        self._inject(LinkChange(down=frozenset(self._clicked), paced=self._clicked_slow))
        controller.convergence_ps = usual_ps

    def _inject(self, change: LinkChange) -> None:
        self._failed = self._failed - change.up | change.down
        self._slow = after(self._slow, change.paced)
        self._fabric.inject(change)

    def poll(self) -> Snapshot:
        """Step up to the time that the pace asks for, or as far as a moment's work goes.

        Then read everything.
        """
        target_ps = self._target_ps()
        deadline = self._clock() + BUDGET_SECONDS
        while self._network.advance(target_ps, EVENTS_AT_ONCE):
            # Virtual time has fallen behind, and need not catch up.
            if self._clock() > deadline:
                self.pace.set_now(self._fabric.clock.now_ps)
                break

        self.pace.heed(self._fabric.clock.now_ps)
        return self.snapshot()

    def replay(self, until_ps: int | None = None) -> Iterator[Snapshot]:
        """Yield snapshots up to a virtual time, by default to the end, without a pace.

        Raises EmulationError without an end.
        """
        horizon_ps = self.scenario.horizon_ps or NEVER
        slice_ps = self._observer.window_ps // SLICES_OF_A_WINDOW
        while self._network.hosts.unfinished and (
            until_ps is None or self._fabric.clock.now_ps < until_ps
        ):
            self._network.give_up(horizon_ps)
            target_ps = self._fabric.clock.now_ps + slice_ps
            target_ps = target_ps if until_ps is None else min(target_ps, until_ps)
            while self._network.advance(target_ps, EVENTS_AT_ONCE):
                pass

            yield self.snapshot()

    def _target_ps(self) -> int:
        """Return the time to reach now; once everything has been shown, virtual time stands."""
        target_ps = self.pace.target_ps()
        now_ps = self._fabric.clock.now_ps
        installations = self._fabric.installations

        if (
            self._network.hosts.unfinished
            or self._waiting(now_ps)
            or (self._converges and any(seen.installed_ps is None for seen in installations))
        ):
            self._busy_ps = now_ps
            return target_ps

        # Two windows more, until the loads have come down to 0.
        last_ps = max(now_ps, self._busy_ps + 2 * self._observer.window_ps)
        if target_ps > last_ps:
            self.pace.set_now(last_ps)

        return min(target_ps, last_ps)

    def _waiting(self, now_ps: int) -> bool:
        """Return whether packets are queued: copies may follow the last packet of a flow."""
        return any(
            port.queue.occupancy_bytes(now_ps)
            for ports in self._network.ports
            for port in ports.values()
        )

    @property
    def _converges(self) -> bool:
        return self._fabric.controller.convergence_ps is not None

    def snapshot(self) -> Snapshot:
        """Return a snapshot of now."""
        return self._observer.snapshot(self._header(), self._reading())

    def _header(self) -> Header:
        scenario = self.scenario
        going = "paused" if self.pace.is_paused else "running"
        state = going if self._network.hosts.unfinished else "complete"

        return Header(
            name=scenario.name,
            network="virtual",
            policy=scenario.balancer,
            label=scenario.balancer_label,
            seed=scenario.seed,
            tree=scenario.tree,
            state=state,
            speed=self.pace.speed,
            factor=self._factor,
            reached=self.pace.reached if state == "running" else None,
            paused=self.pace.is_paused,
            converges=self._converges,
        )

    def _reading(self) -> Reading:
        now_ps = self._fabric.clock.now_ps
        changes = changes_of(self.scenario.tree, self._fabric.installations)
        return Reading(
            now_ps,
            ports=self._port_reading(now_ps),
            flows=self._flow_reading(),
            failed=self._failed,
            slow={link.link: link.share for link in self._slow},
            changes=changes,
        )

    def _port_reading(self, now_ps: int) -> PortReading:
        tree = self.scenario.tree
        counts = np.zeros((5, tree.switches, tree.most_ports + 1), dtype=np.int64)
        for switch, ports in enumerate(self._network.ports):
            for number, port in ports.items():
                # Ports count bytes when they are enqueued; carried bytes have left.
                waiting = port.queue.occupancy_bytes(now_ps)
                row = (
                    port.bytes - waiting,
                    waiting,
                    port.queue.max_bytes,
                    port.counts["dropped"],
                    port.counts["lost_to_failure"],
                )

                counts[:, switch, number] = row

        return PortReading(*counts)

    def _flow_reading(self) -> FlowReading:
        hosts = self._network.hosts
        acked = [hosts.acknowledged(flow) for flow in range(len(self._flows))]
        started = [hosts.started_ps(flow) for flow in range(len(self._flows))]

        return FlowReading(*np.array([acked, started, hosts.done_ps], dtype=np.int64))

    def set_link(self, name: str, up: bool) -> None:
        """Fail or mend a link at the present virtual time."""
        tree = self.scenario.tree
        link = link_named(tree, name)
        if up is (link not in self._failed):
            raise LiveError(f"{link_name(tree, link)} is {'up' if up else 'down'} already")

        links = frozenset((link,))
        self._inject(LinkChange(up=links) if up else LinkChange(down=links))
        (self._clicked.discard if up else self._clicked.add)(link)

    def set_rate(self, name: str, rate: float) -> None:
        """Let a link carry a share of its rate, both ways, from the present virtual time on."""
        tree = self.scenario.tree
        link = link_named(tree, name)
        slow = SlowLink(link, rate, rate)
        if after(self._slow, (slow,)) == self._slow:
            raise LiveError(f"{link_name(tree, link)} is {at_rate(rate)} already")

        self._inject(LinkChange(paced=frozenset((slow,))))
        self._clicked_slow = after(self._clicked_slow, (slow,))

    def start(self, policy: str) -> None:
        """Begin again at time 0, and go."""
        if policy not in self.policies:
            raise LiveError(f"no load balancer {policy!r}; choose from {', '.join(self.policies)}")

        ours = {"policy": policy, "program": None, "host_rule": None}
        is_first = policy == self._first.balancer
        self._begin(self._first if is_first else self._first.model_copy(update=ours))

    def set_pace(self, factor: float, paused: bool) -> None:
        """Make the speed a multiple of the first speed; stop or go on."""
        if not FACTORS[0] <= factor <= FACTORS[1]:
            raise LiveError(
                f"the speed can be {FACTORS[0]:g} to {FACTORS[1]:g} times the first one, "
                f"not {factor:g}"
            )

        self._factor = factor
        self.pace.begin(self._fabric.clock.now_ps, self._base_speed * factor, paused)
