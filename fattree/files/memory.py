"""How much memory this machine has left, and what of it reading a file may take."""

from dataclasses import dataclass
from pathlib import Path

from fattree.errors import TrafficError

GIGABYTE = 10**9
# What of the free memory a command may take: results, and whoever else is here, need some, too.
SHARE = 0.8
# About what an operation takes as it is read, and again in a graph, and what a dependency does.
# Measured with Chakra, 10^5 and more of each: 450 to 530 bytes for both, and 30 to 75; GOAL takes
# half of that.
OPERATION_BYTES = 300
DEPENDENCY_BYTES = 50


def available_bytes() -> int | None:
    """Return how much memory this machine has left, None where it does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        (line,) = [line for line in lines if line.startswith("MemAvailable:")]
        return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        return None


def spare_bytes() -> int | None:
    """Return how much memory a command may take, None where this machine does not tell."""
    available = available_bytes()
    return None if available is None else round(SHARE * available)


@dataclass(slots=True)
class Room:
    """What a workload may take of the memory: `most` bytes, or whatever it needs."""

    most: int | None = None
    taken: int = 0

    def take(self, operations: int, dependencies: int = 0) -> None:
        """Count what has been read, or raise TrafficError where it is more than there is room."""
        self.taken += operations * OPERATION_BYTES + dependencies * DEPENDENCY_BYTES
        if self.most is not None and self.taken > self.most:
            raise TrafficError(
                f"this workload takes more than {self.most / GIGABYTE:.1f} GB of memory,"
                " and no more is free: --force tries all the same"
            )
