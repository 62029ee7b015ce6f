"""The times of one change of links, from its failure to its installation on the last switch.

The driver of a `FabricController`, which knows the time, keeps one `Convergence` per change;
commands and views show them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from controller.fabric_controller import LinkChange, Step
from fattree.routes.slow_links import NOT_SLOW, Slow


@dataclass(slots=True, eq=False)
class Convergence:
    """One change on its way into the switches.

    An instant is None where it is not known, or not reached yet.

    `failed` are the links that routes avoid after it, `slow` those that they spare. `failed_ps` is
    when the links really changed.
    """

    change: LinkChange
    detection: str
    failed: frozenset[int]
    detected_ps: int
    failed_ps: int | None = None
    planned_ps: int | None = None
    installed_ps: int | None = None
    updates: int = 0
    switches: int = 0
    slow: Slow = NOT_SLOW

    @property
    def at_ps(self) -> int:
        """Return the time of the change, or else of its detection."""
        # The time is unknown where a link broke by itself, or probes suspect it wrongly.
        return self.detected_ps if self.failed_ps is None else self.failed_ps

    @property
    def took_ps(self) -> int | None:
        """Return how long it took from the detection to the last switch's acknowledgement."""
        return None if self.installed_ps is None else self.installed_ps - self.detected_ps

    def shift(self, by_ps: int) -> None:
        """Move all instants to a time scale that begins `by_ps` earlier."""
        self.detected_ps += by_ps
        for name in ("failed_ps", "planned_ps", "installed_ps"):
            at_ps = getattr(self, name)
            setattr(self, name, None if at_ps is None else at_ps + by_ps)

    def planned(self, now_ps: int, steps: Sequence[Step]) -> None:
        """Note the steps of the plan."""
        self.planned_ps = now_ps
        self.updates = sum(len(step.changes) for step in steps)
        self.switches = len({step.switch for step in steps})

    def installed(self, now_ps: int) -> None:
        """Note that all switches have acknowledged."""
        self.installed_ps = now_ps
