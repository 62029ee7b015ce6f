"""The driver of a `FabricController` through a run, in virtual time and in real time alike.

It installs updates when they are due, informs hosts, releases damped links, and records every
change. The network gives it a clock, a timer and a way to write to switches.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias

from controller.convergence import Convergence
from controller.fabric_controller import FabricController, LinkChange, Step
from fattree.routes.failures import Links
from fattree.routes.lags import Lags
from fattree.routes.slow_links import Slow, after

OnInstalled: TypeAlias = Callable[[Convergence], object]


class Driver:
    """Reports changes to a controller, and carries out its steps at their times.

    `clock` is the controller's time in picoseconds, which never goes back; `at` calls an action at
    such a time; `write` sends steps to switches; `tell_hosts` lets hosts know which links the
    routes avoid from now on, and which they spare. Records tell the time since `origin_ps`, the
    start of the run.
    """

    def __init__(
        self,
        controller: FabricController,
        clock: Callable[[], int],
        at: Callable[[int, Callable[[], object]], object],
        write: Callable[[Sequence[Step]], object],
        tell_hosts: Callable[[Links, Slow], object],
    ) -> None:
        self.controller = controller
        self.routed: Links = controller.failed
        self.routed_slow: Slow = controller.slow
        self.installations: list[Convergence] = []
        self.origin_ps = 0
        self._clock = clock
        self._at = at
        self._write = write
        self._tell_hosts = tell_hosts
        self._lags = Lags.of(controller.scenario)
        self._changed_ps: dict[int, int] = {}
        self._waiting: list[tuple[LinkChange, OnInstalled]] = []

    def now_ps(self) -> int:
        """Return the time since the start of the run."""
        return self._clock() - self.origin_ps

    def set_origin(self, origin_ps: int) -> None:
        """Make an instant of the clock the run's time 0, also in recorded changes."""
        for seen in self.installations:
            seen.shift(self.origin_ps - origin_ps)

        self.origin_ps = origin_ps

    def start(self) -> None:
        """Bring all switches to the plan of the present state of the links."""
        self._write(self.controller.start(self._clock()))

    def note(self, links: Iterable[int]) -> None:
        """Note that links really change now; the controller may find out later."""
        self._changed_ps.update(dict.fromkeys(links, self._clock()))

    def when_followed(self, change: LinkChange, call: OnInstalled) -> None:
        """Call back when the routes follow a change, however it is detected."""
        self._waiting.append((change, call))

    def learn(self, change: LinkChange) -> Convergence:
        """Report changed links to the controller; its steps take effect when they are due."""
        at_ps = self._clock()
        return self._plan(change, self.controller.on_event(at_ps, change), at_ps)

    def _plan(self, change: LinkChange, steps: Sequence[Step], at_ps: int) -> Convergence:
        controller = self.controller
        convergence = Convergence(
            change,
            detection=controller.scenario.controller.detection,
            failed=controller.failed,
            slow=controller.slow,
            detected_ps=at_ps - self.origin_ps,
            failed_ps=self._failed_ps(change),
        )

        convergence.planned(self.now_ps(), steps)
        self.installations.append(convergence)

        if controller.convergence_ps is not None:
            self._install_when_due(convergence, steps, at_ps + controller.convergence_ps)

        # Each event starts a timer. If the link has flapped again, its timer releases nothing.
        if controller.next_release_ps is not None:
            self._at(max(at_ps, controller.next_release_ps), self._release)

        return convergence

    def _install_when_due(
        self, convergence: Convergence, steps: Sequence[Step], due_ps: int
    ) -> None:
        """Write the steps of each switch when its lag has passed; hosts learn with the last."""
        # One timer is enough for all steps that are due at the same instant.
        *early, last = self._lags.times_ps
        for lag_ps in early:
            self._at(due_ps + lag_ps, partial(self._write, self._with_lag(steps, lag_ps)))

        self._at(due_ps + last, partial(self._install, convergence, self._with_lag(steps, last)))

    def _with_lag(self, steps: Sequence[Step], lag_ps: int) -> list[Step]:
        return [
            step for step in steps if self._lags.deal(self._lags.times_ps, step.switch) == lag_ps
        ]

    def _failed_ps(self, change: LinkChange) -> int | None:
        """Return when the last of the links changed; None where that was not announced."""
        links = change.down | change.up | {slow.link for slow in change.paced}
        changed_ps = [self._changed_ps[link] for link in links if link in self._changed_ps]

        return max(changed_ps) - self.origin_ps if changed_ps else None

    def _release(self) -> None:
        """Use links again that have not failed for long enough."""
        before = self.controller.failed
        at_ps = self._clock()
        steps = self.controller.release(at_ps)

        if before != self.controller.failed:
            self._plan(LinkChange(up=before - self.controller.failed), steps, at_ps)

    def _install(self, convergence: Convergence, steps: Sequence[Step]) -> None:
        # Hosts first: where steps are real messages, switches take a while to acknowledge them.
        self.routed = convergence.failed
        self.routed_slow = convergence.slow
        self._tell_hosts(self.routed, self.routed_slow)
        self._write(steps)
        convergence.installed(self.now_ps())
        self._call_back(convergence)

    def _call_back(self, convergence: Convergence) -> None:
        """Call the callbacks of changes that the routes follow now."""
        waiting = self._waiting
        self._waiting = [entry for entry in waiting if not self._is_followed(entry[0])]
        for change, call in waiting:
            if self._is_followed(change):
                call(convergence)

    def _is_followed(self, change: LinkChange) -> bool:
        is_paced = after(self.routed_slow, change.paced) == self.routed_slow
        return is_paced and change.down <= self.routed and not change.up & self.routed
