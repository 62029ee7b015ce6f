"""Table entries in memory, as machine code searches and counts them."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ofan_p4.softswitch.codegen.program import TableSpec
from ofan_p4.softswitch.native import context
from ofan_p4.softswitch.native.context import WORD, TablePlaces
from ofan_p4.softswitch.native.dense import Dense, dense
from ofan_p4.softswitch.native.resources import NativeMeter
from ofan_p4.softswitch.native.slots import Slots, Words, address, words_of
from ofan_p4.softswitch.state.meters import Meter
from ofan_p4.softswitch.state.tables import Entry, Match, Record, prefix_mask, row_of

# A rank of a ternary entry: its priority, then its age, in 63 bits and a sign.
ORDER_BITS = 32
# Beyond so great arguments it is not asked which of them are the same.
FEW_ARGUMENTS = 1 << 16


class Rows(NamedTuple):
    """Entries with one action: matches (n, fields, 2) as in `tables`, arguments (n, parameters)."""

    action: int
    matches: NDArray[np.int64]
    arguments: NDArray[np.int64]


class NativeRecord(Record):
    """The record of an entry, with counts in the memory of machine code."""

    __slots__ = ("_meter", "place", "table")

    def __init__(self, table: NativeIndex, slot: int, match: Match, priority: int) -> None:
        self.table = table
        self.place = slot
        super().__init__(match, priority)

    def _word(self, slot: int) -> int:
        return int(self.table.entries[self.place, slot])

    def _set_word(self, slot: int, value: int) -> None:
        self.table.entries[self.place, slot] = value

    @property
    def packets(self) -> int:
        """Packets that have hit the entry."""
        return self._word(context.PACKETS)

    @packets.setter
    def packets(self, value: int) -> None:
        self._set_word(context.PACKETS, value)

    @property
    def octets(self) -> int:
        """The bytes of these packets."""
        return self._word(context.OCTETS)

    @octets.setter
    def octets(self, value: int) -> None:
        self._set_word(context.OCTETS, value)

    @property
    def last_hit_ps(self) -> int:
        """When the last packet hit the entry."""
        return self._word(context.LAST_HIT)

    @last_hit_ps.setter
    def last_hit_ps(self, value: int) -> None:
        self._set_word(context.LAST_HIT, value)

    @property
    def meter(self) -> Meter | None:
        """The entry's direct meter."""
        return self._meter

    @meter.setter
    def meter(self, meter: Meter | None) -> None:
        self._meter: NativeMeter | None = None
        if meter is not None:
            self._meter = NativeMeter(meter.by_bytes)
            self._meter.configure(meter.rates)

        self._set_word(context.METER, address(self._meter.words) if self._meter else 0)


class NativeIndex:
    """The entries of one table in memory, in the form that machine code searches."""

    def __init__(self, spec: TableSpec, places: TablePlaces, descriptor: Words) -> None:
        self._spec = spec
        self._places = places
        self._descriptor = descriptor
        self.entries: Words = np.zeros((1, places.entry_words), dtype=np.uint64)
        self._used = 0
        self._free: list[int] = []
        self._order = count()
        self._slots: dict[int, Slots] = {}
        # Entries of equal mask and value, by rank: only the first of them is in the slots.
        self._ranked: dict[tuple[int, int], list[tuple[int, int]]] = {}
        # The best rank of each level, by its mask: levels are searched in this order.
        self._tops: dict[int, int] = {}
        self._rows: list[tuple[int, list[int]]] = []
        # The rank of every entry by its row in memory, which is needed to remove it.
        self._of_rows: dict[int, int] = {}
        self._dense: Dense | None = None
        # Kept here, as the descriptor only has its address.
        self._table: Words = np.zeros((1, 1), dtype=np.uint64)
        if places.kind == "exact":
            self._slots[0] = Slots(places.key_words)

        self._publish()

    def record(self, match: Match, priority: int) -> Record:
        """Return a record with room for an entry; the first is the default's."""
        if self._free:
            index = self._free.pop()
        else:
            index = self._used
            self._used += 1
            # All rows are taken: the array doubles, and has another address afterwards.
            if index == len(self.entries):
                self.entries = np.vstack([self.entries, np.zeros_like(self.entries)])
                self._publish()

        return NativeRecord(self, index, match, priority)

    def set_default(self, entry: Entry) -> None:
        """Make this the entry of packets that match no other entry."""
        self._write(entry)

    def add(self, entry: Entry) -> None:
        """Insert an entry."""
        self._write(entry)
        index = _place(entry)
        match self._places.kind:
            case "exact":
                self._slots[0].put(self._exact_key(entry[2].match), index)
            case "lpm":
                mask, value = self._masked(entry)
                self._level(mask).put(self._words(value), index)
                self._tops[mask] = -mask
            case "masked":
                self._add_ranked(entry, index)
            case _:
                self._add_row(entry, index)

        self._publish()

    def fill(self, pieces: Sequence[Rows]) -> None:
        """Put rows of numbers in the place of all entries but the default, in one step.

        The entries cannot be changed or read singly afterwards: this is for fabrics of thousands of
        switches, which are only run. Raises ValueError where a field is neither exact nor matched
        by a prefix, or a key or an argument has more than 64 bits.
        """
        places = self._places
        # Keys of one word are put into their places by whole arrays; others are too rare for that.
        if places.kind not in ("exact", "lpm") or places.key_words > 1:
            raise ValueError(f"a table that is searched by {places.kind} keys")

        blocks = [self.entries[:1]]
        numbers: list[NDArray[np.int64]] = []
        for rows in pieces:
            sizes = places.argument_words[rows.action]
            if any(size > 1 for size in sizes):
                raise ValueError("an argument of more than 64 bits")

            arguments, which = self._distinct(rows.arguments)
            block = np.zeros((len(arguments), places.entry_words), dtype=np.uint64)
            block[:, context.ACTION] = rows.action
            block[:, context.ENTRY_WORDS : context.ENTRY_WORDS + len(sizes)] = arguments
            numbers.append(sum(map(len, blocks)) + which)
            blocks.append(block)

        self.entries = np.concatenate(blocks)
        self._used = len(self.entries)
        self._free = []
        self._search([rows.matches for rows in pieces], numbers)
        self._publish()

    def _distinct(
        self, arguments: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return arguments (n, parameters) once each, and which of them every row has."""
        spec = self._spec
        is_counting = spec.with_counters or spec.supports_timeout or spec.direct_meter
        greatest = int(arguments.max(initial=0)) if arguments.shape[1] == 1 else 0
        if is_counting or arguments.shape[1] != 1 or greatest > FEW_ARGUMENTS:
            return arguments, np.arange(len(arguments))

        # Thousands of slots lead to a few ports: their entries stay in the processor's caches.
        values = arguments[:, 0]
        is_there = np.zeros(greatest + 1, dtype=np.int64)
        is_there[values] = 1
        return np.flatnonzero(is_there)[:, None], (np.cumsum(is_there) - 1)[values]

    def _search(
        self, matches: Sequence[NDArray[np.int64]], numbers: Sequence[NDArray[np.int64]]
    ) -> None:
        """Build the searched form of all matches, (n, fields, 2), and the entry of each."""
        fields = self._spec.key
        # The empty array gives the shape where there are no matches at all.
        every = np.concatenate([*matches, np.zeros((0, len(fields), 2), dtype=np.int64)])
        value = np.zeros(len(every), dtype=np.uint64)
        mask = np.zeros(len(every), dtype=np.uint64)
        for number, key in enumerate(fields):
            ones = (1 << key.bits) - 1
            part = np.full(len(every), ones, dtype=np.uint64)
            if key.kind == "lpm":
                masks = np.array([prefix_mask(n, key.bits) for n in range(key.bits + 1)], np.uint64)
                part = masks[every[:, number, 1]]

            # Fields stand side by side in one word, the first one highest.
            value = value << np.uint64(key.bits) | every[:, number, 0].astype(np.uint64) & part
            mask = mask << np.uint64(key.bits) | part

        entries = np.concatenate([*numbers, np.zeros(0, dtype=np.int64)])
        self._dense = self._placed(value, mask, entries)
        if self._dense is not None:
            return

        if self._places.kind == "exact":
            self._slots = {0: Slots.of(value[:, None], entries)}
            return

        self._slots = {}
        self._tops = {}
        for level_mask in np.unique(mask):
            rows = np.flatnonzero(mask == level_mask)
            self._slots[int(level_mask)] = Slots.of(value[rows][:, None], entries[rows])
            # A longer prefix has the greater mask: the order of levels is that of their negatives.
            self._tops[int(level_mask)] = -int(level_mask)

    def _placed(self, values: Words, masks: Words, entries: NDArray[np.int64]) -> Dense | None:
        """Return keys as a dense table, None where they are too sparse."""
        fields = self._spec.key
        # Prefixes of the key as a whole: only the last field may be matched by a prefix.
        if not len(values) or any(key.kind == "lpm" for key in fields[:-1]):
            return None

        bits = sum(key.bits for key in fields)
        if self._places.kind == "exact":
            lengths = np.full(len(values), bits)
            ends = np.cumsum([key.bits for key in fields]).tolist()
            table = dense(values, lengths, entries, bits, [bits])
            return table or dense(values, lengths, entries, bits, ends)

        prefixes = {length: np.uint64(prefix_mask(length, bits)) for length in range(bits + 1)}
        # Few lengths: one comparison for each is all.
        distinct = np.unique(masks)
        lengths_of = [int(mask).bit_count() for mask in distinct]
        assert all(prefixes[n] == mask for n, mask in zip(lengths_of, distinct, strict=True))
        lengths = np.array(lengths_of)[np.searchsorted(distinct, masks)]
        return dense(values, lengths, entries, bits, sorted(lengths_of))

    def replace(self, old: Entry, entry: Entry) -> None:
        """Give an entry another action; packets find it where it was."""
        self._write(entry)

    def remove(self, entry: Entry) -> None:
        """Remove an entry."""
        index = _place(entry)
        match self._places.kind:
            case "exact":
                self._slots[0].drop(self._exact_key(entry[2].match))
            case "lpm":
                mask, value = self._masked(entry)
                self._forget(mask, value)
            case "masked":
                self._remove_ranked(entry, index)
            case _:
                rank = self._of_rows.pop(index)
                self._rows = [row for row in self._rows if row[0] != rank]

        self._publish()
        # The row stays as it is until it is used again: the caller may still read the last counts.
        self._free.append(index)

    def _write(self, entry: Entry) -> None:
        action, data, _ = entry
        row = self.entries[_place(entry)]
        row[context.ACTION] = action & WORD
        places = self._places.argument_words.get(action)
        if places is None:
            # No action of the program: the number of a member or group.
            row[context.ENTRY_WORDS : context.ENTRY_WORDS + len(data)] = [
                value & WORD for value in data
            ]
            return

        # Arguments stand one behind the other, each in whole words.
        data_words = [
            part for size, value in zip(places, data, strict=True) for part in words_of(value, size)
        ]
        row[context.ENTRY_WORDS : context.ENTRY_WORDS + len(data_words)] = data_words

    def _exact_key(self, match: Match) -> list[int]:
        value = 0
        for key, (part, _) in zip(self._spec.key, match, strict=True):
            value = value << key.bits | part

        return self._words(value)

    def _words(self, value: int) -> list[int]:
        return words_of(value, self._places.key_words)

    def _masked(self, entry: Entry) -> tuple[int, int]:
        """Return mask and value over all fields side by side (`tables.row_of`)."""
        mask, value, *_ = row_of(self._spec.key, entry)
        return int(mask), int(value)

    def _level(self, mask: int) -> Slots:
        if mask not in self._slots:
            self._slots[mask] = Slots(self._places.key_words)

        return self._slots[mask]

    def _forget(self, mask: int, value: int) -> None:
        slots = self._slots[mask]
        slots.drop(self._words(value))
        # An empty level would cost every lookup a step.
        if not len(slots):
            del self._slots[mask], self._tops[mask]

    def _add_ranked(self, entry: Entry, slot: int) -> None:
        mask, value = self._masked(entry)
        # The greatest priority has the least rank, and of equal priorities the older entry.
        rank = (-entry[2].priority << ORDER_BITS) + next(self._order)
        self._of_rows[slot] = rank
        self.entries[slot, context.RANK] = rank & WORD
        # A later entry of the same match and a lower priority waits behind the first.
        ranked = self._ranked.setdefault((mask, value), [])
        insort(ranked, (rank, slot))
        self._level(mask).put(self._words(value), ranked[0][1])
        self._tops[mask] = min(rank, self._tops.get(mask, context.NO_RANK))

    def _remove_ranked(self, entry: Entry, slot: int) -> None:
        mask, value = self._masked(entry)
        rank = self._of_rows.pop(slot)
        ranked = self._ranked[mask, value]
        ranked.remove((rank, slot))
        if ranked:
            self._level(mask).put(self._words(value), ranked[0][1])
        else:
            del self._ranked[mask, value]
            self._forget(mask, value)

        if mask in self._tops and self._tops[mask] == rank:
            self._tops[mask] = min(
                ranks[0][0] for (level, _), ranks in self._ranked.items() if level == mask
            )

    def _add_row(self, entry: Entry, slot: int) -> None:
        mask, value, *ends, _ = row_of(self._spec.key, entry)
        row = [slot, *self._words(mask), *self._words(value)]
        # Each range has two ends of the same number of words.
        sizes = [size for size in self._places.range_words for _ in range(2)]
        for end, size in zip(ends, sizes, strict=True):
            row += words_of(end, size)

        rank = (-entry[2].priority << ORDER_BITS) + next(self._order)
        self._of_rows[slot] = rank
        insort(self._rows, (rank, row))

    def _publish(self) -> None:
        """Write the addresses that machine code searches into the descriptor."""
        descriptor = self._descriptor
        descriptor[context.ENTRIES] = address(self.entries)
        descriptor[context.DENSE] = 0
        if self._dense is not None:
            descriptor[context.DENSE] = address(self._dense.levels)
            descriptor[context.DENSE_CELLS] = address(self._dense.cells)
            return

        match self._places.kind:
            case "exact":
                slots = self._slots[0]
                descriptor[context.SLOTS] = address(slots.array)
                descriptor[context.SLOT_MASK] = slots.mask
                return
            case "lpm" | "masked":
                rows = [
                    [top & WORD, address(slots.array), slots.mask, *self._words(mask)]
                    for mask, slots in self._slots.items()
                    for top in (self._tops[mask] if self._places.kind == "masked" else 0,)
                ]
                # Machine code stops at the first level that can no longer win.
                order = sorted(range(len(rows)), key=[*self._tops.values()].__getitem__)
                rows = [rows[i] for i in order]
            case _:
                rows = [row for _, row in self._rows]

        # An address must stand in the descriptor even where there is nothing: the old table serves.
        if rows:
            self._table = np.array(rows, dtype=np.uint64)

        descriptor[context.LEVELS] = address(self._table)
        descriptor[context.LEVEL_COUNT] = len(rows)


def _place(entry: Entry) -> int:
    record = entry[2]
    assert isinstance(record, NativeRecord)
    return record.place
