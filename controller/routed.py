"""Schedules from each switch's own routes: no central plan, no knowledge of other switches.

`RoutedController` keeps the groups of a switch as its routes give them, and brings the switch to
its plan whenever its routes change: a planner (`controller.switch_planner`) uses it for its own
switch. `ReportedController` and `RoutedDriver` are an observer's: they keep the entries that all
switches should have by their planners' reports, and record the times.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from controller.convergence import Convergence
from controller.driver import Driver
from controller.entries import Entries
from controller.fabric_controller import FabricController, LinkChange, Step
from controller.pipeline import Pipeline
from controller.planner_reports import Report
from fattree.experiment.model import Scenario
from fattree.routes.bgp import uplink_ratios
from fattree.routes.failures import Links
from fattree.routes.forwarding import Forwarding
from fattree.routes.iwrr import simplify
from fattree.routes.own_routes import OwnRoutes
from fattree.routes.slow_links import NOT_SLOW, Slow
from fattree.units import PS_PER_NS

Rows = NDArray[np.int64]


class RoutedController(FabricController):
    """The controller of switches that are planned from their own routes, each by itself."""

    def __init__(self, scenario: Scenario, pipeline: Pipeline) -> None:
        super().__init__(scenario, pipeline)
        self._routes = OwnRoutes(scenario)

    def set_routes(self, switch: int, weights: Rows) -> None:
        """Take a switch's routes: weights (destination edges, uplinks)."""
        self._routes.set(switch, weights)

    def on_routes(self, now_ps: int, switch: int, weights: Rows) -> list[Step]:
        """Return the steps that bring a switch to the plan of its new routes, due at once."""
        self.set_routes(switch, weights)
        return self.restore(now_ps, switch)

    def ids(self, switch: int) -> list[int]:
        """Return the id of the first schedule of each of the plan's blocks."""
        return list(self._installed[switch].ids.values())

    def forwarding(self) -> Forwarding:
        """Return groups, schedules and starts for the present routes."""
        return self._routes.forwarding()


class ReportedController(RoutedController):
    """The switches as their planners report them; it plans nothing."""

    def __init__(self, scenario: Scenario, pipeline: Pipeline) -> None:
        super().__init__(scenario, pipeline)
        self._ratios: dict[int, Rows] = {}
        self._ids: dict[int, list[int]] = {}

    def note(self, switch: int, weights: Rows, ids: list[int]) -> None:
        """Take the routes that a switch has entries for, and the ids of its schedules."""
        self._ids[switch] = ids
        # A core has no routes of its own.
        if weights.size:
            self._ratios[switch] = simplify(weights)
            self.set_routes(switch, weights)

    def entries(self, switch: int) -> Entries:
        """Return the entries that a switch has by its planner's last report."""
        plan = self._planner.plan(self.forwarding(), switch)
        return self._planner.entries(plan, self._ids[switch])

    def has_routes(self, routes: Sequence[Rows]) -> bool:
        """Return whether all switches have entries for these ratios of weights."""
        return all(
            switch in self._ratios and np.array_equal(self._ratios[switch], ratios)
            for switch, ratios in enumerate(routes)
        )


class RoutedDriver(Driver):
    """Records changes of links as planners report that they have followed them.

    `begin` records a change of links; it is installed when every switch has the routes that BGP
    gives for the links of that moment. Only the record knows about that, no planner does.
    """

    controller: ReportedController

    def __init__(
        self,
        controller: ReportedController,
        clock: Callable[[], int],
        tell_hosts: Callable[[Links, Slow], object],
    ) -> None:
        # It waits for nothing and writes nothing: the planners do.
        super().__init__(
            controller,
            clock,
            lambda *_timer: None,
            write=lambda _steps: None,
            tell_hosts=tell_hosts,
        )
        self._open: list[Convergence] = []
        # Of the last open change: its routes, the switches that have begun to follow it, and the
        # instant of the clock at which the last of them had acknowledged.
        self._routes: list[Rows] = []
        self._moved: set[int] = set()
        self._acknowledged_ps = 0

    def begin(self, change: LinkChange, failed: frozenset[int]) -> Convergence:
        """Record a change that the network has just made."""
        at_ps = self.now_ps()
        convergence = Convergence(
            change,
            detection="bgp",
            failed=failed,
            slow=NOT_SLOW,
            detected_ps=at_ps,
            failed_ps=self._failed_ps(change),
        )
        self._open.append(convergence)
        self._routes = uplink_ratios(self.controller.scenario.tree, failed, "bgp")
        self._moved = set()
        self.installations.append(convergence)
        return convergence

    def follow(self, switch: int, report: Report) -> None:
        """Take a planner's report of the entries that its switch has acknowledged."""
        self.controller.note(switch, np.array(report["weights"], dtype=np.int64), report["ids"])
        if report["updates"]:
            self._note_progress(switch, report)

        if self._open and self.controller.has_routes(self._routes):
            self._complete()

    def _note_progress(self, switch: int, report: Report) -> None:
        """Count the updates to the last change, which BGP has begun to follow."""
        planned_ps = report["planned_ns"] * PS_PER_NS - self.origin_ps
        if not self._open or planned_ps < self._open[-1].at_ps:
            return

        convergence = self._open[-1]
        # Reports of several switches may come in another order than their plans.
        if convergence.planned_ps is None or planned_ps < convergence.planned_ps:
            convergence.detected_ps = convergence.planned_ps = planned_ps

        self._acknowledged_ps = max(self._acknowledged_ps, report["at_ns"] * PS_PER_NS)
        convergence.updates += report["updates"]
        self._moved.add(switch)
        convergence.switches = len(self._moved)

    def _complete(self) -> None:
        self.routed = self._open[-1].failed
        # Hosts that choose paths learn of failed links now, as from a central controller.
        self._tell_hosts(self.routed, NOT_SLOW)
        complete, self._open = self._open, []
        for convergence in complete:
            acknowledged_ps = self._acknowledged_ps - self.origin_ps
            convergence.installed(max(acknowledged_ps, convergence.detected_ps))
            self._call_back(convergence)
