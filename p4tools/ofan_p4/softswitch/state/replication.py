"""The packet replication engine: the copies that a multicast group or a clone session makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Replica:
    """One copy that the replication engine makes.

    `backups` are (port, instance) to use instead while the port is down, in this order. `is_bytes`
    remembers in which form P4Runtime gave the port.
    """

    port: int
    instance: int = 0
    is_bytes: bool = True
    backups: tuple[tuple[int, int], ...] = ()

    def place(self, is_up: Callable[[int], bool]) -> tuple[int, int]:
        """Return (port, instance) of the first that is up, or of the replica itself."""
        primary = (self.port, self.instance)
        if not self.backups or is_up(self.port):
            return primary

        return next((backup for backup in self.backups if is_up(backup[0])), primary)


@dataclass(frozen=True, slots=True)
class CloneSession:
    """Where clones go; `truncate` is the most bytes that they keep (0: all)."""

    replicas: tuple[Replica, ...]
    priority: int = 0
    truncate: int = 0


@dataclass(slots=True)
class Replication:
    """The state of the packet replication engine."""

    groups: dict[int, tuple[Replica, ...]] = field(default_factory=dict)
    sessions: dict[int, CloneSession] = field(default_factory=dict)
    metadata: dict[int, bytes] = field(default_factory=dict)
