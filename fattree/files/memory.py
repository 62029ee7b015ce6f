"""The memory that this machine has left, and the share of it that reading a file may take."""

from dataclasses import dataclass
from pathlib import Path

from fattree.errors import TrafficError

GIGABYTE = 10**9
# The share of the free memory that a command may take: results and other processes need some, too.
SHARE = 0.8
# About the memory of an operation, as it is read and again in a graph, and that of a dependency.
# Measured with Chakra, 10^5 and more of each: 450 to 530 bytes for both, and 30 to 75; GOAL takes
# half of that.
OPERATION_BYTES = 300
DEPENDENCY_BYTES = 50


def available_bytes() -> int | None:
    """Return how much memory this machine has left, None where it gives no figure."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        (line,) = [line for line in lines if line.startswith("MemAvailable:")]
        return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        return None


def spare_bytes() -> int | None:
    """Return how much memory a command may take, None where this machine gives no figure."""
    available = available_bytes()
    return None if available is None else round(SHARE * available)


@dataclass(slots=True)
class Room:
    """The memory that a workload may take: `most` bytes, or without a bound where it is None."""

    most: int | None = None
    taken: int = 0

    def take(self, operations: int, dependencies: int = 0) -> None:
        """Count the memory of operations read, or raise TrafficError where `most` is exceeded."""
        self.taken += operations * OPERATION_BYTES + dependencies * DEPENDENCY_BYTES
        if self.most is not None and self.taken > self.most:
            raise TrafficError(
                f"this workload takes more than {self.most / GIGABYTE:.1f} GB of memory,"
                " and no more is free: --force tries all the same"
            )
