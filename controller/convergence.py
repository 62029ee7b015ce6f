"""What becomes of one change of links: when it happened, was detected, planned, and installed on
the last switch.

The driver of a `FabricController`, which knows the time, keeps one `Convergence` per change;
commands and views show them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from controller.fabric_controller import LinkChange, Step
from fattree.addressing import link_name
from fattree.experiment import Detection
from fattree.topology import FatTree
from fattree.units import PS_PER_MS


@dataclass(slots=True, eq=False)
class Convergence:
    """One change on its way into the switches.

    An instant is None where it is not known, or not reached yet.

    `failed` are the links that routes avoid after it. `failed_ps` is when the links really changed.
    """

    change: LinkChange
    detection: Detection
    failed: frozenset[int]
    detected_ps: int
    failed_ps: int | None = None
    planned_ps: int | None = None
    installed_ps: int | None = None
    updates: int = 0
    switches: int = 0
    on_installed: list[Callable[["Convergence"], None]] = field(default_factory=list)

    @property
    def at_ps(self) -> int:
        """Return when it happened, or else when it was noticed."""
        return self.detected_ps if self.failed_ps is None else self.failed_ps

    @property
    def took_ps(self) -> int | None:
        """Return how long it took from the detection to the last switch's acknowledgement."""
        return None if self.installed_ps is None else self.installed_ps - self.detected_ps

    def shift(self, by_ps: int) -> None:
        """Tell all instants on a time scale that begins `by_ps` earlier."""
        self.detected_ps += by_ps
        for name in ("failed_ps", "planned_ps", "installed_ps"):
            at_ps = getattr(self, name)
            setattr(self, name, None if at_ps is None else at_ps + by_ps)

    def planned(self, now_ps: int, steps: Sequence[Step]) -> None:
        """Note what the plan asks for."""
        self.planned_ps = now_ps
        self.updates = sum(len(step.changes) for step in steps)
        self.switches = len({step.switch for step in steps})

    def installed(self, now_ps: int) -> None:
        """Note that all switches have acknowledged, and tell who waits for it."""
        self.installed_ps = now_ps
        for call in self.on_installed:
            call(self)

    def row(self, tree: FatTree) -> dict[str, Any]:
        """Return it for a machine to read, times in milliseconds of the run."""
        stages = {
            name: getattr(self, f"{name}_ps")
            for name in ("failed", "detected", "planned", "installed")
        }

        return {
            "links_down": [link_name(tree, link) for link in sorted(self.change.down)],
            "links_up": [link_name(tree, link) for link in sorted(self.change.up)],
            "detection": self.detection,
            **{
                f"{name}_ms": None if at_ps is None else at_ps / PS_PER_MS
                for name, at_ps in stages.items()
            },
            "updates": self.updates,
            "switches": self.switches,
        }
