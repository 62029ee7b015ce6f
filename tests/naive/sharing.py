"""A memory that all ports of a switch share, plainly: a queue may hold alpha times what is free."""

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
        wanted = Fraction(str(1 if told is None else told))
        return cls(size, Fraction(floor(wanted * 2**16), 2**16))

    def most(self, own: int, held: int) -> int:
        """Return what a queue may hold that has `own` of all that is `held`."""
        free = self.size - held
        return min(floor(self.alpha * free), own + free)
