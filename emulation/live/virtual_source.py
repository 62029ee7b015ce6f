"""A run in virtual time at a chosen speed; links can be broken while it runs.

It is the run that `ofan emulate` makes, with clicks among its events (`emulation.live.clicks`).
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from emulation.errors import EmulationError
from emulation.live.clicks import Click, with_clicks
from emulation.live.model import (
    Header,
    Observer,
    Reading,
    Snapshot,
)
from emulation.live.source import LiveError
from emulation.outcomes.changes import changes_of
from emulation.programs.own_program import Loaded
from emulation.virtual.fabric import VirtualFabric
from fattree.errors import FabricError
from fattree.experiment.model import Scenario
from fattree.policies import POLICIES
from fattree.routes import failures
from fattree.routes.bounds import bound_ps
from fattree.routes.demand import Demand
from fattree.routes.slow_links import NOT_SLOW, RateChange, Slow, SlowLink, after, at_rate
from fattree.shape.addressing import link_name, link_named
from fattree.units import PS_PER_SECOND
from hostagent.transports.state import NEVER

DEMO_SECONDS = 15.0
WINDOW_SECONDS = 0.7
# A window for loads holds at least so many packets, or loads would jump between 0 and 1.
SHORTEST_WINDOW_SLOTS = 12
# The longest time of a poll: with ten polls a second there is time left for commands.
BUDGET_SECONDS = 0.06
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
        """Run at a speed from a virtual time on, or stop at that time."""
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
        """Note the virtual time that was reached for the last target."""
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
    demand = Demand.of(scenario)
    last_ps = max((change.time_ps for change in demand.events.changes), default=0)
    least_ps = bound_ps(scenario, demand.flows, demand.gaps_ps)
    return (least_ps + last_ps) / PS_PER_SECOND / seconds


class VirtualSource:
    """Steps a scenario's run.

    `start` begins it again; links that were clicked broken or slow are so from its start.
    """

    def __init__(
        self,
        scenario: Scenario,
        speed: float | None = None,
        loaded: Loaded | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        # The user's load balancers have the names of their files, which no load balancer of ours
        # has.
        ours = {slug: policy.label for slug, policy in POLICIES.items()}
        self.policies = {scenario.balancer: scenario.balancer_label} | ours
        self.pace = Pace(speed or default_speed(scenario), clock)
        self._first = scenario
        self._base_speed, self._factor = self.pace.speed, 1.0
        self._own = loaded
        self._clock = clock
        self._clicked: set[int] = set()
        self._clicked_slow: Slow = NOT_SLOW
        self._begin(scenario)

    def _begin(self, scenario: Scenario) -> None:
        # Links that earlier runs left broken or slow.
        clicks = [
            *(Click(0, link, is_up=False) for link in self._clicked),
            *(Click(0, slow.link, slow=slow) for slow in self._clicked_slow),
        ]
        self._build(scenario, clicks)
        self._busy_ps = 0
        window_ps = max(
            self.pace.speed * WINDOW_SECONDS * PS_PER_SECOND,
            SHORTEST_WINDOW_SLOTS * scenario.slot_ps,
        )

        self._observer = Observer(scenario, round(window_ps))
        self.pace.begin(0, self.pace.speed)

    def _build(self, file: Scenario, clicks: Sequence[Click]) -> None:
        """Make a run with clicks among its events; nothing changes where that is an error."""
        scenario = with_clicks(file, clicks)
        program = self._own.program if self._own and scenario.program else None
        self._fabric = VirtualFabric(scenario, program, has_digest=False)
        self._file = file
        self._clicks = clicks
        self.scenario = scenario
        line = self._fabric.line
        changes: list[failures.LinkChange | RateChange] = [*line.changes, *line.rates]
        self._ahead = deque(sorted(changes, key=lambda change: change.time_ps))
        self._failed: frozenset[int] = frozenset()
        self._slow: Slow = NOT_SLOW
        if any(click.time_ps == 0 for click in clicks):
            # Routes heed them from time 0 on, also with a long G.
            controller = self._fabric.controller
            usual_ps = controller.convergence_ps
            controller.convergence_ps = None if usual_ps is None else 0
            self._fabric.advance(0)
            controller.convergence_ps = usual_ps

    def _click(self, click: Click) -> None:
        """Make the run up to now once more, with a click at its end."""
        now_ps = self._fabric.clock.now_ps
        try:
            self._build(self._file, [*self._clicks, click])
        except (EmulationError, FabricError) as error:
            raise LiveError(str(error)) from None

        self._fabric.advance(now_ps)
        self._follow()

    def _follow(self) -> None:
        """Note which links are down and slow by now."""
        while self._ahead and self._ahead[0].time_ps <= self._fabric.clock.now_ps:
            change = self._ahead.popleft()
            if isinstance(change, RateChange):
                self._slow = after(self._slow, change.links)
            else:
                self._failed = self._failed - change.up | change.down

    def poll(self) -> Snapshot:
        """Step up to the time that the pace asks for, or for a moment's work; return a snapshot."""
        target_ps = self._target_ps()
        deadline = self._clock() + BUDGET_SECONDS
        self._fabric.advance(target_ps, is_late=lambda: self._clock() > deadline)
        # Virtual time that has fallen behind need not catch up.
        if self._fabric.clock.now_ps < target_ps:
            self.pace.set_now(self._fabric.clock.now_ps)

        self.pace.heed(self._fabric.clock.now_ps)
        return self.snapshot()

    def replay(self, until_ps: int | None = None) -> Iterator[Snapshot]:
        """Yield snapshots up to a virtual time, by default to the end, without a pace.

        Raises EmulationError without an end.
        """
        horizon_ps = self.scenario.horizon_ps or NEVER
        slice_ps = self._observer.window_ps // SLICES_OF_A_WINDOW
        while not self._fabric.is_finished and (
            until_ps is None or self._fabric.clock.now_ps < until_ps
        ):
            self._fabric.give_up(horizon_ps)
            target_ps = self._fabric.clock.now_ps + slice_ps
            self._fabric.advance(target_ps if until_ps is None else min(target_ps, until_ps))
            yield self.snapshot()

    def _target_ps(self) -> int:
        """Return the time to reach now; once everything has been shown, virtual time stands."""
        target_ps = self.pace.target_ps()
        now_ps = self._fabric.clock.now_ps
        installations = self._fabric.installations

        if (
            not self._fabric.is_finished
            or self._fabric.port_reading().queued.any()
            or (self._converges and any(seen.installed_ps is None for seen in installations))
        ):
            self._busy_ps = now_ps
            return target_ps

        # Two windows more, until the loads have come down to 0.
        last_ps = max(now_ps, self._busy_ps + 2 * self._observer.window_ps)
        if target_ps > last_ps:
            self.pace.set_now(last_ps)

        return min(target_ps, last_ps)

    @property
    def _converges(self) -> bool:
        return self._fabric.controller.convergence_ps is not None

    def snapshot(self) -> Snapshot:
        """Return a snapshot of now."""
        return self._observer.snapshot(self._header(), self._reading())

    def _header(self) -> Header:
        scenario = self.scenario
        going = "paused" if self.pace.is_paused else "running"
        state = "complete" if self._fabric.is_finished else going

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
        self._follow()
        changes = changes_of(self.scenario.tree, self._fabric.installations)
        return Reading(
            self._fabric.clock.now_ps,
            ports=self._fabric.port_reading(),
            flows=self._fabric.flow_reading(),
            failed=self._failed,
            slow={link.link: link.share for link in self._slow},
            changes=changes,
        )

    def set_link(self, name: str, up: bool) -> None:
        """Fail or mend a link at the present virtual time."""
        tree = self.scenario.tree
        link = link_named(tree, name)
        if up is (link not in self._failed):
            raise LiveError(f"{link_name(tree, link)} is {'up' if up else 'down'} already")

        self._click(Click(self._fabric.clock.now_ps, link, is_up=up))
        (self._clicked.discard if up else self._clicked.add)(link)

    def set_rate(self, name: str, rate: float) -> None:
        """Let a link carry a share of its rate, both ways, from the present virtual time on."""
        tree = self.scenario.tree
        link = link_named(tree, name)
        slow = SlowLink(link, rate, rate)
        if after(self._slow, (slow,)) == self._slow:
            raise LiveError(f"{link_name(tree, link)} is {at_rate(rate)} already")

        self._click(Click(self._fabric.clock.now_ps, link, slow=slow))
        self._clicked_slow = after(self._clicked_slow, (slow,))

    def start(self, policy: str) -> None:
        """Start the run again at time 0."""
        if policy not in self.policies:
            raise LiveError(f"no load balancer {policy!r}; choose from {', '.join(self.policies)}")

        ours = {"policy": policy, "program": None, "host_rule": None}
        is_first = policy == self._first.balancer
        try:
            self._begin(self._first if is_first else self._first.model_copy(update=ours))
        except (EmulationError, FabricError) as error:
            raise LiveError(str(error)) from None

    def set_pace(self, factor: float, paused: bool) -> None:
        """Make the speed a multiple of the first speed; stop or go on."""
        if not FACTORS[0] <= factor <= FACTORS[1]:
            raise LiveError(
                f"the speed can be {FACTORS[0]:g} to {FACTORS[1]:g} times the first one, "
                f"not {factor:g}"
            )

        self._factor = factor
        self.pace.begin(self._fabric.clock.now_ps, self._base_speed * factor, paused)
