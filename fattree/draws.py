"""Every random number of a run, as a pure function of (seed, component, n).

A counter-based generator lets the P4 programs, the virtual network and the simulator's kernels draw
the same numbers in any order. All arithmetic stays below 2**63, so that the very same code runs on
Python integers, on numpy int64 arrays and inside numba kernels; `Any` stands for any of the three.
"""

from enum import IntEnum
from typing import Any

MASK = 0xFFFFFFFF

# Numbers never change their meaning: results of a seed would change with them.


class Stream(IntEnum):
    """The purpose of a draw; together with an index it names a component of the fabric."""

    MATRIX = 1
    FAILURE = 2
    ORDER = 3
    START = 4
    SWITCH = 5
    MULTIPLIER = 6
    PHASE = 7
    JITTER = 8
    LABEL = 9
    PLB = 10
    WAYPOINT = 11
    LOSS = 12
    COMPUTATION = 13
    EXPERT = 14
    STRAGGLER = 15
    LAG = 16


def component(stream: int, index: int) -> int:
    """Name the component `index` (below 2**32) of a stream."""
    return (stream << 32) | index


def scramble(x: Any) -> Any:
    """Permute 32-bit integers by xorshift and multiplication."""
    # Both factors are odd, which makes it a permutation, and below 2**30, so that products stay
    # below 2**62: numba and numpy have no wider integers, and signed ones must not overflow.
    x = ((x ^ (x >> 16)) * 0x2C1B3C6D) & 0xFFFFFFFF
    x = ((x ^ (x >> 12)) * 0x297A2D39) & 0xFFFFFFFF
    return x ^ (x >> 15)


def mix(seed: Any, component: Any, n: Any) -> Any:
    """Return the n-th 32-bit number of a component's stream, uniform over 0 .. 2**32 - 1.

    `seed` and `component` are below 2**63, `n` below 2**62; numpy int64 arrays broadcast.
    """
    # A permutation follows each half of each argument: neighbouring seeds, components and numbers
    # must have nothing in common.
    low = scramble(scramble(seed & 0xFFFFFFFF) ^ (component & 0xFFFFFFFF))
    high = scramble(scramble(((seed >> 32) ^ (component >> 32) ^ 0x5BD1E995) & 0xFFFFFFFF) ^ low)
    return scramble(scramble((low + n) & 0xFFFFFFFF) ^ high ^ ((n >> 32) & 0xFFFFFFFF))


def below(draw: Any, bound: Any) -> Any:
    """Scale a 32-bit draw to 0 .. bound - 1.

    It is draw * bound >> 32, in two halves so that bounds, gaps in ps among them, may reach 2**46.
    """
    return (draw * (bound >> 16) + (draw * (bound & 0xFFFF) >> 16)) >> 16
