"""The controller of a whole fabric, without I/O: link events in, timed updates of switches out.

Virtual time and gRPC drive the same object: it is told what happened and when, and says what each switch must be sent,
and when. It never waits, sends or looks at a clock.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from controller.entries import Batch, Entries
from controller.pipeline import Pipeline
from controller.plan import Planner
from controller.reconcile import Installed, reconcile
from fabric.experiment import Scenario
from fabric.forwarding import Forwarding, forwarding
from fabric.wecmp import LinkState


@dataclass(frozen=True, slots=True)
class LinkChange:
    """Inter-switch links (indices) that go down and come up at one instant."""

    down: frozenset[int] = frozenset()
    up: frozenset[int] = frozenset()


class Step(NamedTuple):
    """A batch of updates for one switch. Steps of equal time are sent in order, those of different switches in any."""

    time_ps: int
    switch: int
    changes: Batch


class FabricController:
    """Plans a scenario's switches and follows the state of the links.

    `convergence_ps` is G: how long after a link event its routes are installed; None for never. Raises PlanError where the
    program cannot hold the plan.
    """

    def __init__(self, scenario: Scenario, pipeline: Pipeline, failed: Iterable[int] = ()) -> None:
        self.scenario = scenario
        self.failed = frozenset(failed)
        self.convergence_ps = scenario.convergence_ps
        self._planner = Planner(scenario, pipeline)
        self._installed = [Installed()] * scenario.tree.switches

    def start(self, now_ps: int = 0) -> list[Step]:
        """Return what brings empty switches to the plan of the present state of the links."""
        return self._steps(now_ps)

    def on_event(self, now_ps: int, event: LinkChange) -> list[Step]:
        """Take note of a change and return the updates that follow, due after G; only what changes."""
        self.failed = self.failed - event.up | event.down
        return [] if self.convergence_ps is None else self._steps(now_ps + self.convergence_ps)

    def entries(self, switch: int) -> Entries:
        """Return what a switch holds once all steps so far have been sent."""
        return self._installed[switch].entries

    def forwarding(self) -> Forwarding:
        """Return groups, schedules and starts for the present state of the links."""
        tree, scheme = self.scenario.tree, self.scenario.scheme
        links = LinkState.without(tree, self.failed)
        return forwarding(tree, links, scheme, self.scenario.seed, self.scenario.load_balancer.schedule_orders)

    def _steps(self, time_ps: int) -> list[Step]:
        state = self.forwarding()
        return [
            Step(time_ps, switch, batch) for switch in range(self.scenario.tree.switches) for batch in self._move(switch, state)
        ]

    def _move(self, switch: int, state: Forwarding) -> list[Batch]:
        plan = self._planner.plan(state, switch)
        self._installed[switch], batches = reconcile(self._planner, switch, self._installed[switch], plan)
        return batches
