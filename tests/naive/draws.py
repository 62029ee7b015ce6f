"""Random numbers as a pure function of seed, purpose, index and count (design, "Layout": `mix`).

The three networks draw the same numbers in any order, so a model that must agree with them to the
picosecond needs the same function: 32-bit words, hashed one after the other.
"""

from enum import IntEnum

WORD = 2**32
# Sets the chain of upper words apart from that of lower words: seed 0 has neither bit set.
SALT = 0x5BD1E995


class Purpose(IntEnum):
    """The purpose of a number. The values are part of the definition of a run."""

    MATRIX = 1
    FAILURE = 2
    ORDER = 3
    START = 4
    SWITCH = 5
    MULTIPLIER = 6
    PHASE = 7
    JITTER = 8
    LABEL = 9
    PATIENCE = 10
    WAYPOINT = 11
    LOSS = 12
    LAG = 16


def number(seed: int, purpose: Purpose, index: int, count: int) -> int:
    """Return the `count`-th of the 32-bit numbers that component `index` draws for a purpose."""
    seed_high, seed_low = divmod(seed, WORD)
    count_high, count_low = divmod(count, WORD)

    low = hashed(hashed(seed_low) ^ index)
    high = hashed(hashed(seed_high ^ purpose ^ SALT) ^ low)
    return hashed(hashed((low + count_low) % WORD) ^ high ^ count_high)


def hashed(word: int) -> int:
    """Return a permutation of the 32-bit words: shift and multiply, twice."""
    word = (word ^ word >> 16) * 0x2C1B3C6D % WORD
    word = (word ^ word >> 12) * 0x297A2D39 % WORD
    return word ^ word >> 15


def scaled(draw: int, bound: int) -> int:
    """Return a 32-bit draw scaled to 0 .. bound - 1."""
    return draw * bound // WORD
