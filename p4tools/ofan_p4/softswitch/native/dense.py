"""Dense tables: the bits of a key lead to its entry, without a hash and a search.

A level looks at up to two runs of bits of the key, side by side; the cell of their value is an
entry, or a node of the next level. Bits that all keys of a level share are compared at once, and a
key that differs in them has the entry of the node as a whole, its first cell: that of a shorter
prefix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ofan_p4.softswitch.native.context import DENSE_NODE, DENSE_WORDS
from ofan_p4.softswitch.native.slots import Words

Cells = NDArray[np.uint32]
# A table is dense with so many cells an entry, and some more.
CELLS_AN_ENTRY = 8
SPARE_CELLS = 1024
WORD_BITS = 64


class Dense(NamedTuple):
    """The words of all levels, and all cells: of entries the index plus 1, 0 for none."""

    levels: Words
    cells: Cells


class _Level(NamedTuple):
    mask: int
    value: int
    runs: tuple[tuple[int, int], ...]

    @property
    def cells(self) -> int:
        """The cells of a node, its own one included."""
        return 1 + (1 << sum(width for _, width in self.runs))

    def words(self) -> list[int]:
        """Return the level's words for machine code."""
        # The second run stands below the first.
        (shift, width), (low_shift, low_width) = (*self.runs, (0, 0), (0, 0))[:2]
        ones = (1 << width) - 1, (1 << low_width) - 1
        return [self.mask, self.value, shift, ones[0], low_width, low_shift, ones[1], 0]

    def places(self, values: Words) -> NDArray[np.int64]:
        """Return the index of each key's cell in its node."""
        index = np.zeros(len(values), dtype=np.uint64)
        for shift, width in self.runs:
            part = values >> np.uint64(shift) & np.uint64((1 << width) - 1)
            index = index << np.uint64(width) | part

        return index.astype(np.int64) + 1


def dense(
    values: Words,
    lengths: NDArray[np.int64],
    entries: NDArray[np.int64],
    bits: int,
    cuts: Sequence[int],
) -> Dense | None:
    """Return the cells of keys, of which `lengths` bits of `bits` count; None if they are sparse.

    Each has the index of its entry. Lengths are among `cuts`, ascending. Of keys that are the same,
    the last one counts.
    """
    numbers = entries + 1
    max_cells = CELLS_AN_ENTRY * len(values) + SPARE_CELLS
    # The keys that go on, and which cell they have come to: that of their node.
    here = np.zeros(len(values), dtype=np.int64)
    levels: list[list[int]] = []
    cells: Cells = np.zeros(0, dtype=np.uint32)
    entered: Cells = np.zeros(1, dtype=np.uint32)
    above = 0
    for cut in cuts:
        level = _level(values, above, cut, bits)
        size = level.cells
        first = len(cells)
        if first + size * len(entered) > max_cells:
            return None

        # A node begins with the entry that its keys have had so far.
        cells = np.concatenate([cells, np.repeat(entered, size)])
        indexes = first + here * size + level.places(values)
        ends = lengths == cut
        cells[indexes[ends]] = numbers[ends]
        levels.append(level.words())
        if ends.all():
            break

        on = ~ends
        values, lengths, numbers = values[on], lengths[on], numbers[on]
        reached, here = np.unique(indexes[on], return_inverse=True)
        entered = cells[reached]
        following = _level(values, cut, _next(cuts, cut), bits).cells
        nodes = len(cells) + following * np.arange(len(reached))
        if len(cells) + following * len(reached) > min(max_cells, DENSE_NODE):
            return None

        cells[reached] = DENSE_NODE + nodes
        above = cut

    return Dense(np.array(levels, dtype=np.uint64).reshape(-1, DENSE_WORDS), cells)


def _next(cuts: Sequence[int], cut: int) -> int:
    return next(length for length in cuts if length > cut)


def _level(values: Words, above: int, cut: int, bits: int) -> _Level:
    """Return the level of the bits from `above` to `cut`, from the highest one on."""
    level_bits = ((1 << cut - above) - 1) << (bits - cut)
    if not len(values):
        return _Level(0, 0, ())

    varying = int(np.bitwise_or.reduce(values ^ values[0])) & level_bits
    runs = _runs(varying)
    seen = sum(((1 << width) - 1) << shift for shift, width in runs)
    shared = level_bits & ~seen
    return _Level(shared, int(values[0]) & shared, runs)


def _runs(varying: int) -> tuple[tuple[int, int], ...]:
    """Return (shift, width) of up to two runs that hold all bits that vary, and few others."""
    if not varying:
        return ()

    high = varying.bit_length()
    low = (varying & -varying).bit_length() - 1
    # The longest gap parts them.
    gaps = [(0, 0)]
    start = None
    for bit in range(low, high):
        if varying >> bit & 1:
            if start is not None:
                gaps.append((bit - start, start))
            start = None
        elif start is None:
            start = bit

    size, start_ = max(gaps)
    if not size:
        return ((low, high - low),)

    return ((start_ + size, high - start_ - size), (low, start_ - low))
