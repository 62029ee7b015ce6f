"""Schedules from each switch's own routes: no central plan, no knowledge of other switches.

`RoutedController` keeps the groups of each switch as its routes give them, and brings a switch to
its plan whenever its routes change. `RoutedDriver` writes at once, and records the times.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from controller.convergence import Convergence
from controller.driver import Driver
from controller.fabric_controller import FabricController, LinkChange, Step
from controller.pipeline import Pipeline
from fattree.experiment.model import Scenario
from fattree.routes.bgp import uplink_ratios
from fattree.routes.failures import Links
from fattree.routes.forwarding import Forwarding
from fattree.routes.iwrr import simplify
from fattree.routes.own_routes import OwnRoutes
from fattree.routes.slow_links import NOT_SLOW, Slow

Rows = NDArray[np.int64]


class RoutedController(FabricController):
    """The agents of all switches: each plans its switch from that switch's routes."""

    def __init__(self, scenario: Scenario, pipeline: Pipeline) -> None:
        super().__init__(scenario, pipeline)
        self._routes = OwnRoutes(scenario)
        self._ratios: dict[int, Rows] = {}

    def set_routes(self, switch: int, weights: Rows) -> None:
        """Take a switch's routes: weights (destination edges, uplinks)."""
        self._ratios[switch] = simplify(weights)
        self._routes.set(switch, weights)

    def on_routes(self, now_ps: int, switch: int, weights: Rows) -> list[Step]:
        """Return the steps that bring a switch to the plan of its new routes, due at once."""
        self.set_routes(switch, weights)
        return self._bring(now_ps, (switch,), self.forwarding())

    def forwarding(self) -> Forwarding:
        """Return groups, schedules and starts for the present routes."""
        return self._routes.forwarding()

    def has_routes(self, routes: Sequence[Rows]) -> bool:
        """Return whether all switches have these ratios of weights."""
        return all(
            switch in self._ratios and np.array_equal(self._ratios[switch], ratios)
            for switch, ratios in enumerate(routes)
        )


class RoutedDriver(Driver):
    """Takes routes from switches' kernels and writes schedules, switch by switch.

    `begin` records a change of links; it is installed when every switch has the routes that BGP
    gives for the links of that moment. Only the record knows about that, no switch does.
    """

    controller: RoutedController

    def __init__(
        self,
        controller: RoutedController,
        clock: Callable[[], int],
        write: Callable[[Sequence[Step]], object],
        tell_hosts: Callable[[Links, Slow], object],
    ) -> None:
        # It waits for nothing: routes are written when they come.
        super().__init__(
            controller, clock, lambda *_timer: None, write=write, tell_hosts=tell_hosts
        )
        self._open: list[Convergence] = []
        # Of the last open change: its routes, and the switches that have begun to follow it.
        self._routes: list[Rows] = []
        self._moved: set[int] = set()

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

    def follow(self, switch: int, weights: Rows) -> None:
        """Bring a switch to its new routes."""
        steps = self.controller.on_routes(self._clock(), switch, weights)
        self._write(steps)
        self._note_progress(steps)
        if self._open and self.controller.has_routes(self._routes):
            self._complete()

    def _note_progress(self, steps: Sequence[Step]) -> None:
        """Count the steps to the last change, which BGP has begun to follow."""
        if not steps or not self._open:
            return

        convergence = self._open[-1]
        if convergence.planned_ps is None:
            convergence.detected_ps = convergence.planned_ps = self.now_ps()

        convergence.updates += sum(len(step.changes) for step in steps)
        self._moved |= {step.switch for step in steps}
        convergence.switches = len(self._moved)

    def _complete(self) -> None:
        self.routed = self._open[-1].failed
        # Hosts that choose paths learn of failed links now, as from a central controller.
        self._tell_hosts(self.routed, NOT_SLOW)
        complete, self._open = self._open, []
        for convergence in complete:
            convergence.installed(self.now_ps())
            self._call_back(convergence)
