"""Words in memory, and a hash table made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ofan_p4.softswitch.native.context import HASH_FACTOR, WORD

Words = NDArray[np.uint64]
FEWEST_SLOTS = 4


def address(array: NDArray[Any]) -> int:
    """Return the address of an array's numbers."""
    return int(array.ctypes.data)


def words_of(number: int, size: int) -> list[int]:
    """Return a number as so many words, the lowest first."""
    return [number >> 64 * i & WORD for i in range(size)]


def hashed(key: Sequence[int]) -> int:
    """Return the hash of a key's words; `helpers.hashed` computes the same."""
    # The upper half is folded into the lower half, which alone chooses the slot.
    mixed = 0
    for part in key:
        mixed = (mixed ^ part) * HASH_FACTOR & WORD
        mixed ^= mixed >> 32

    return mixed


def _hashes(keys: Words) -> Words:
    """Return `hashed` of every row."""
    mixed = np.zeros(len(keys), dtype=np.uint64)
    for part in keys.T:
        mixed = (mixed ^ part) * np.uint64(HASH_FACTOR)
        mixed ^= mixed >> np.uint64(32)

    return mixed


class Slots:
    """A hash table of keys and the indices of their entries, with open addressing.

    At most half of the slots are taken, so that a search soon finds a free slot.
    """

    def __init__(self, key_words: int) -> None:
        self._key_words = key_words
        self._taken = 0
        self.array: Words = np.zeros((FEWEST_SLOTS, key_words + 1), dtype=np.uint64)

    @classmethod
    def of(cls, keys: Words, entries: NDArray[np.int64]) -> Slots:
        """Return the slots of distinct keys (n, key words) and their entries, at once."""
        slots = cls(keys.shape[1])
        # A power of two, so that a mask replaces the remainder; at most half of it is taken.
        size = max(FEWEST_SLOTS, 1 << (2 * len(keys) - 1).bit_length())
        slots._taken = len(keys)
        slots.array = np.zeros((size, keys.shape[1] + 1), dtype=np.uint64)
        if not len(keys):
            return slots

        # Keys in the order of their homes each take the first place that is free behind the one
        # before. Those beyond the end go to the beginning, where the others make room for them.
        homes = _hashes(keys) & np.uint64(size - 1)
        order = np.argsort(homes, kind="stable")
        shift = np.maximum.accumulate(homes[order].astype(np.int64) - np.arange(len(keys)))
        wrapped = 0
        while True:
            places = np.arange(len(keys)) + np.maximum(shift, wrapped)
            beyond = int((places >= size).sum())
            if beyond == wrapped:
                break

            wrapped = beyond

        places[len(keys) - wrapped :] = np.arange(wrapped)
        slots.array[places, :-1] = keys[order]
        slots.array[places, -1] = entries[order] + 1
        return slots

    def __len__(self) -> int:
        return self._taken

    @property
    def mask(self) -> int:
        """The number of slots less 1."""
        return len(self.array) - 1

    def put(self, key: Sequence[int], entry: int) -> None:
        """Insert a key with the index of its entry, or change the index."""
        # More than half full: searches would become long.
        if 2 * (self._taken + 1) > len(self.array):
            self._grow()

        index = self._place(key)
        row = self.array[index]
        self._taken += not row[-1]
        row[:-1] = key
        row[-1] = entry + 1

    def drop(self, key: Sequence[int]) -> None:
        """Remove a key."""
        index = self._place(key)
        rows = self.array
        mask = self.mask
        self._taken -= 1
        hole = index

        # Keys behind without a gap move up where they may, so that no search ends too early.
        while True:
            rows[hole] = 0
            index = hole
            while True:
                index = index + 1 & mask
                if not rows[index, -1]:
                    return

                home = hashed(rows[index, :-1].tolist()) & mask
                if (index - home & mask) >= (index - hole & mask):
                    rows[hole] = rows[index]
                    hole = index
                    break

    def _place(self, key: Sequence[int]) -> int:
        mask = self.mask
        index = hashed(key) & mask
        expected = list(key)
        rows = self.array
        while rows[index, -1] and rows[index, :-1].tolist() != expected:
            index = index + 1 & mask

        return index

    def _grow(self) -> None:
        old = self.array
        # Every key moves: its place depends on the size.
        self.array = np.zeros((2 * len(old), old.shape[1]), dtype=np.uint64)
        for row in old[old[:, -1] != 0]:
            self.array[self._place(row[:-1].tolist())] = row
