"""A memory that all ports of a switch share: a queue may hold alpha times the free bytes."""

from dataclasses import dataclass
from fractions import Fraction
from math import floor

from fattree.experiment.model import Scenario


@dataclass(frozen=True, slots=True)
class Memory:
    """So many bytes; alpha is a multiple of 2**-16."""

    size: int
    alpha: Fraction

    @classmethod
    def of(cls, scenario: Scenario, size: int) -> "Memory":
        told = scenario.fabric.buffer_alpha
        alpha = Fraction(str(1 if told is None else told))
        return cls(size, Fraction(floor(alpha * 2**16), 2**16))

    def most(self, queue_bytes: int, held: int) -> int:
        """Return the bytes that a queue may hold if it has `queue_bytes` of all `held` bytes."""
        free = self.size - held
        return min(floor(self.alpha * free), queue_bytes + free)
