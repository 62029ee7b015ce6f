"""Ternary entries by mask: one dict per mask, the dict with the best entry searched first.

A search takes as many steps as there are masks that may still hold a better entry, not as many as
there are entries. `levels`, which generated code reads, holds (rank that no entry of the mask
beats, mask, lookup of a masked key); a lookup gives (rank, entry). The lowest rank wins: the
highest priority, and among equals the entry that came first. A step costs twice as much as the
comparison of a row, so that `levels` stays empty, and rows are compared in turn, unless there
are at least twice as many entries as masks.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from itertools import count
from typing import Any

Entry = tuple[int, tuple[int, ...], Any]
Ranked = tuple[int, Entry]
Level = tuple[int, int, Callable[[int], Ranked | None]]
Place = tuple[int, int, int]

# Above every rank: priorities have 32 bits, the order of insertion ORDER_BITS.
NO_RANK = 1 << 80
ORDER_BITS = 48


class MaskedEntries:
    """The entries of a table with key fields that can all be masked.

    An entry is known by its record.
    """

    def __init__(self) -> None:
        self.levels: list[Level] = []
        self._best: dict[int, dict[int, Ranked]] = {}
        self._tops: dict[int, int] = {}
        self._all: dict[tuple[int, int], list[Ranked]] = {}
        self._places: dict[int, Place] = {}
        self._order = count()

    def add(self, entry: Entry, mask: int, value: int) -> None:
        """Add an entry; its priority is that of its record."""
        # One integer orders entries: by priority first, then by age.
        rank = (-entry[2].priority << ORDER_BITS) + next(self._order)
        self._places[id(entry[2])] = rank, mask, value
        ranked = self._all.setdefault((mask, value), [])
        insort(ranked, (rank, entry), key=lambda item: item[0])
        self._best.setdefault(mask, {})[value] = ranked[0]

        # A mask keeps its place among the levels while its best entry stays the same.
        if rank < self._tops.get(mask, NO_RANK):
            self._tops[mask] = rank
            self._sort()
        elif not self.levels and self._pays():
            self._sort()

    def replace(self, entry: Entry) -> None:
        """Put an entry in the place of the entry with the same record."""
        rank, mask, value = self._places[id(entry[2])]
        ranked = self._all[mask, value]
        ranked[:] = [(rank, entry) if item[0] == rank else item for item in ranked]
        self._best[mask][value] = ranked[0]

    def remove(self, entry: Entry) -> None:
        """Remove an entry."""
        rank, mask, value = self._places.pop(id(entry[2]))
        best = self._best[mask]
        ranked = self._all[mask, value]
        ranked[:] = [item for item in ranked if item[0] != rank]

        if ranked:
            best[value] = ranked[0]
        else:
            del best[value], self._all[mask, value]

        if rank == self._tops[mask]:
            self._lower(mask)
        elif self.levels and not self._pays():
            self._sort()

    def _lower(self, mask: int) -> None:
        """Find the best rank of a mask again, or forget the mask where it is empty."""
        best = self._best[mask]
        if best:
            self._tops[mask] = min(rank for rank, _ in best.values())
        else:
            del self._best[mask], self._tops[mask]

        self._sort()

    def _pays(self) -> bool:
        return len(self._places) >= 2 * len(self._tops)

    def _sort(self) -> None:
        tops = self._tops.items() if self._pays() else ()
        # In place: generated code holds this very list.
        self.levels[:] = sorted((top, mask, self._best[mask].get) for mask, top in tops)
