"""A switch's memory that all its ports share, and how much of it a queue may hold.

The rule is the dynamic threshold of Choudhury and Hahne (*Dynamic queue length thresholds for
shared-memory packet switches*, IEEE/ACM Transactions on Networking, 1998): a queue may hold alpha
times the free memory. The memory has the bytes of all ports' buffers without sharing, so that both
kinds of buffers cost a switch as much.
"""

from fractions import Fraction
from math import floor

from fattree.experiment.model import Scenario
from fattree.units import ALPHA_BITS

# Choudhury and Hahne's example.
DEFAULT_ALPHA = 1


def is_shared(scenario: Scenario) -> bool:
    """Return whether a switch's ports share its memory."""
    return scenario.fabric.buffer == "shared"


def alpha(scenario: Scenario) -> int:
    """Return alpha times 2**16, rounded down; 0 where memory is not shared."""
    told = scenario.fabric.buffer_alpha
    factor = Fraction(str(DEFAULT_ALPHA if told is None else told))
    return floor(factor * 2**ALPHA_BITS) if is_shared(scenario) else 0
