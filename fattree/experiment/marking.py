"""Which packets get an ECN mark: above one bound, or by chance between two, as for DCQCN."""

from fractions import Fraction
from math import floor
from typing import NamedTuple


class Marking(NamedTuple):
    """Data that find more than `least` bytes waiting are marked, or may be.

    Above `full` bytes all are. Between the two a packet is marked where the upper 16 bits of a draw
    are below (bytes - least) * `slope` >> 16. Equal bounds need no draws.
    """

    least: int
    full: int
    slope: int


def marking(size: int, least_percent: float, full_percent: float, chance: float) -> Marking:
    """Return the marking with bounds that are shares of `size` bytes.

    The chance grows from 0 at the lower bound to `chance` at the upper bound.
    """
    # Percentages are decimals: exact in fractions, so that bounds do not depend on rounding. Queues
    # are whole bytes: a queue above a share is above its floor.
    parts = (Fraction(str(percent)) for percent in (least_percent, full_percent))
    # No packet is as small as a byte: 1 means the same as 0, which P4 programs take for no marks.
    least, full = (max(1, floor(size * part / 100)) for part in parts)
    if full <= least:
        return Marking(least, least, 0)

    return Marking(least, full, floor(Fraction(str(chance)) * 2**32 / (full - least)))
