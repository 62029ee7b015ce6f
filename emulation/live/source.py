"""Sources of snapshots, which also take commands: a run in virtual time, or a held network."""

from collections.abc import Mapping
from typing import Protocol

from emulation.errors import EmulationError
from emulation.live.model import Snapshot
from fattree.experiment.model import Scenario


class LiveError(EmulationError):
    """A command that a source does not take, in one line."""


class Source(Protocol):
    """A source of snapshots. All calls come from one thread at a time."""

    @property
    def scenario(self) -> Scenario:
        """Return the scenario that runs."""

    @property
    def policies(self) -> Mapping[str, str]:
        """Return the load balancers that `start` takes, with their names for people."""

    def poll(self) -> Snapshot:
        """Let time pass up to now, and return a snapshot.

        Raises EmulationError where nothing runs any more.
        """

    def set_link(self, name: str, up: bool) -> None:
        """Fail or mend a link; raises LiveError, FabricError or ControlError."""

    def set_rate(self, name: str, rate: float) -> None:
        """Let a link carry a share of its rate, 1 for all; raises as `set_link` does."""

    def start(self, policy: str) -> None:
        """Run the collective, once more, with a load balancer; raises LiveError or ControlError."""

    def set_pace(self, factor: float, paused: bool) -> None:
        """Change the speed by a factor, stop or go on; raises LiveError where time is real."""
