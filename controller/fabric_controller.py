"""The controller of a whole fabric, without I/O: link events in, timed updates of switches out.

Virtual time and gRPC drive the same object: it takes changes with their times, and returns the
updates of each switch with theirs. It never waits, sends or looks at a clock.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from controller.entries import Change, Entries
from controller.errors import PlanError
from controller.parts import Part, Phase
from controller.pipeline import Pipeline
from controller.plan import Planner
from controller.reconcile import Installed, adopted, reconcile
from fattree.experiment.model import Scenario
from fattree.routes.damping import damping
from fattree.routes.failures import Timeline
from fattree.routes.forwarding import Drawn, Forwarding, scenario_forwarding
from fattree.routes.slow_links import NOT_SLOW, Slow, after
from fattree.routes.wecmp import LinkState


@dataclass(frozen=True, slots=True)
class LinkChange:
    """Inter-switch links (indices) that go down and come up at one instant.

    `paced` has links that run at another share of their rate.
    """

    down: frozenset[int] = frozenset()
    up: frozenset[int] = frozenset()
    paced: Slow = NOT_SLOW


def link_changes(line: Timeline) -> Iterator[tuple[int, LinkChange]]:
    """Yield the instants at which links change, in order, with all that happens then."""
    broken = {change.time_ps: change for change in line.changes}
    paced = {change.time_ps: change.links for change in line.rates}
    for time_ps in sorted({*broken, *paced}):
        change = broken.get(time_ps)
        yield (
            time_ps,
            LinkChange(
                down=change.down if change else frozenset(),
                up=change.up if change else frozenset(),
                paced=paced.get(time_ps, NOT_SLOW),
            ),
        )


class Step(NamedTuple):
    """A batch of updates for one switch.

    Steps of equal time are sent phase by phase, in order within a switch. A step of an older epoch
    of its switch is out of date: since then the switch has been read back.
    """

    time_ps: int
    switch: int
    changes: Sequence[Change]
    phase: Phase = Phase.ADD
    epoch: int = 0


class FabricController:
    """Plans a scenario's switches and follows the state of the links.

    `convergence_ps` is G: the time from a link event to its routes' installation; None for never.
    With flap damping a link that comes and goes too often counts as failed until it has been quiet
    (`damping`): ask `next_release_ps` when to call `release`. Raises PlanError where the program
    cannot hold the plan.
    """

    def __init__(
        self,
        scenario: Scenario,
        pipeline: Pipeline,
        failed: Iterable[int] = (),
        slow: Slow = NOT_SLOW,
    ) -> None:
        self.scenario = scenario
        self.failed = frozenset(failed)
        self.slow = slow
        self.convergence_ps = scenario.convergence_ps

        # Without `punt` no switch would send a probe back, and every link would seem dead.
        if scenario.controller.detection == "probe" and "punt" not in pipeline.tables:
            raise PlanError(
                'controller.detection = "probe": '
                "the program has no table punt, so it could not catch probes"
            )

        self._planner = Planner(scenario, pipeline)
        self._damping = damping(scenario.controller, self.failed)

        # Random orders and starts depend on no link, so they are drawn once for all states.
        self._drawn = Drawn()
        self._home: Forwarding | None = None
        self._installed = [Installed()] * scenario.tree.switches
        self._epochs = [0] * scenario.tree.switches

    def start(self, now_ps: int = 0) -> list[Step]:
        """Return the steps that bring all switches to the plan for the present links."""
        return self._steps(now_ps)

    def on_event(self, now_ps: int, event: LinkChange) -> list[Step]:
        """Take note of a change and return the updates of changed entries, due after G."""
        # Damping is for links that come and go: a slow link gets less weight, and stays in use.
        self.slow = after(self.slow, event.paced)
        if self._damping is None:
            return self._move(now_ps, self.failed - event.up | event.down)

        return self._move(now_ps, self._damping.on_change(now_ps, event.down, event.up))

    @property
    def next_release_ps(self) -> int | None:
        """Return when the next damped link will not have failed for long enough."""
        return None if self._damping is None else self._damping.next_release_ps

    def release(self, now_ps: int) -> list[Step]:
        """Use links again that have not failed for long enough; return the steps that follow."""
        return self._move(now_ps, self._damping.release(now_ps)) if self._damping else []

    def adopt(self, switch: int, entries: Entries) -> None:
        """Take the entries that were read back from a switch as the installed ones."""
        plan, home = (
            self._planner.plan(state, switch) for state in (self.forwarding(), self._whole())
        )
        self._installed[switch] = adopted(self._planner, entries, home, plan)

        # Updates on their way were computed against other entries than the switch has.
        self._epochs[switch] += 1

    def epoch(self, switch: int) -> int:
        """Return how often a switch has been read back."""
        return self._epochs[switch]

    def restore(self, now_ps: int, switch: int) -> list[Step]:
        """Return the steps that bring one switch to the plan for the present links."""
        return self._bring(now_ps, (switch,), self.forwarding())

    def entries(self, switch: int) -> Entries:
        """Return the entries of a switch after all steps so far."""
        return self._installed[switch].entries

    def forwarding(self) -> Forwarding:
        """Return groups, schedules and starts for the present state of the links."""
        return scenario_forwarding(
            self.scenario,
            LinkState.without(self.scenario.tree, self.failed, self.slow),
            self._drawn,
        )

    def _whole(self) -> Forwarding:
        """Return the forwarding of a fabric whose links are whole."""
        # Made when it is first needed: only a switch that is read back needs it.
        if self._home is None:
            self._home = scenario_forwarding(
                self.scenario, LinkState.without(self.scenario.tree), self._drawn
            )

        return self._home

    def _move(self, now_ps: int, failed: frozenset[int]) -> list[Step]:
        self.failed = failed

        # With G = infinity nothing is ever installed, so nothing may count as installed either.
        return [] if self.convergence_ps is None else self._steps(now_ps + self.convergence_ps)

    def _steps(self, time_ps: int) -> list[Step]:
        # All switches are asked, though few have something to do: comparing rows costs little.
        return self._bring(time_ps, range(self.scenario.tree.switches), self.forwarding())

    def _bring(self, time_ps: int, switches: Iterable[int], state: Forwarding) -> list[Step]:
        steps = [
            Step(
                time_ps, switch, changes=part.changes, phase=part.phase, epoch=self._epochs[switch]
            )
            for switch in switches
            for part in self._parts(switch, state)
        ]

        # Phase by phase over the whole fabric: a switch that others start to use has its routes by
        # then. Sorting is stable, so the steps of one switch keep their order.
        return sorted(steps, key=lambda step: step.phase)

    def _parts(self, switch: int, state: Forwarding) -> list[Part]:
        plan = self._planner.plan(state, switch)
        self._installed[switch], parts = reconcile(self._installed[switch], plan)
        return parts
