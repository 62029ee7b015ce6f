"""Match-action tables at run time.

A table keeps its entries by (match, priority) for the control plane and, beside them, an index,
which an engine searches. Python's is a dict where every field is exact, a dict per prefix length
with an lpm field, else rows in order of priority, and beside them, where every field can be masked,
a dict per mask. A match is one pair of integers per key field: exact (value, 0), lpm (value, prefix
length), ternary and optional (value, mask), range (low, high).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ofan_p4.softswitch.base.errors import Code, EntryError
from ofan_p4.softswitch.base.masked import MaskedEntries
from ofan_p4.softswitch.codegen.program import NO_ACTION, KeyField, TableSpec, lookup_kind
from ofan_p4.softswitch.state.meters import Meter

Match = tuple[tuple[int, int], ...]


@dataclass(slots=True, eq=False)
class Record:
    """One entry's state for the control plane and the direct resources."""

    match: Match
    priority: int
    packets: int = 0
    octets: int = 0
    meter: Meter | None = None
    last_hit_ps: int = 0
    idle_timeout_ns: int = 0
    is_const: bool = False
    metadata: bytes = b""
    controller_metadata: int = 0


# The number of the action, its arguments, the record; the first is NO_ACTION, USE_MEMBER or
# USE_GROUP where the entry names no action of its own (and then the second holds the id).
Entry = tuple[int, tuple[int, ...], Record]
Row = tuple[Any, ...]
IndexKey = int | tuple[int, ...]


class Index(Protocol):
    """The entries of a table in the form that one engine searches."""

    def record(self, match: Match, priority: int) -> Record:
        """Return the record of a new entry."""

    def add(self, entry: Entry) -> None:
        """Insert an entry."""

    def replace(self, old: Entry, entry: Entry) -> None:
        """Put an entry in the place of the entry with its record, in one step."""

    def remove(self, entry: Entry) -> None:
        """Remove an entry."""

    def set_default(self, entry: Entry) -> None:
        """Make this the entry of packets that match no other entry."""


class PythonIndex:
    """The form that generated Python searches: dicts, or rows in order of priority.

    `searched` and `default` stay the same objects for good, because the code holds them.
    """

    def __init__(self, spec: TableSpec) -> None:
        self.kind = lookup_kind(spec)
        self.exact: dict[IndexKey, Entry] = {}
        self.levels: list[tuple[int, dict[IndexKey, Entry]]] = []
        self.rows: list[Row] = []
        self.masked = MaskedEntries()
        # A list, so that generated code finds the present default entry without asking the table.
        self.default: list[Entry] = [(NO_ACTION, (), Record((), 0))]
        self._key = spec.key

    @property
    def searched(self) -> Any:
        """The structure that generated code searches."""
        match self.kind:
            case "exact":
                return self.exact.get
            case "lpm":
                return self.levels
            case _:
                return self.rows

    def record(self, match: Match, priority: int) -> Record:
        """Return a record of plain numbers."""
        return Record(match, priority)

    def add(self, entry: Entry) -> None:
        """Insert an entry."""
        match = entry[2].match
        if self.kind == "exact":
            self.exact[exact_key(match)] = entry
        elif self.kind == "lpm":
            mask, index = self._prefix(match)
            self._level(mask)[index] = entry
        else:
            row = row_of(self._key, entry)
            # Behind rows of the same priority: the older entry wins.
            insort(self.rows, row, key=_rank)
            if self.kind == "masked":
                self.masked.add(entry, *row[:2])

    def replace(self, old: Entry, entry: Entry) -> None:
        """Put an entry in the place of the entry with its record: no packet misses both."""
        if self.kind == "masked":
            self.masked.replace(entry)

        if self.kind in ("masked", "rows"):
            # Rows of equal priority keep their order, so that the entry stays in its place.
            index = next(i for i, row in enumerate(self.rows) if row[-1] is old)
            self.rows[index] = (*self.rows[index][:-1], entry)
        else:
            self.add(entry)

    def remove(self, entry: Entry) -> None:
        """Remove an entry."""
        match = entry[2].match
        if self.kind == "exact":
            del self.exact[exact_key(match)]
        elif self.kind == "lpm":
            self._unlink_prefix(match)
        else:
            if self.kind == "masked":
                self.masked.remove(entry)

            index = next(i for i, row in enumerate(self.rows) if row[-1] is entry)
            del self.rows[index]

    def set_default(self, entry: Entry) -> None:
        """Make this the entry of packets that match no other entry."""
        self.default[0] = entry

    def _prefix(self, match: Match) -> tuple[int, IndexKey]:
        mask = 0
        values = []
        for key, (value, length) in zip(self._key, match, strict=True):
            if key.kind == "lpm":
                mask = prefix_mask(length, key.bits)
                value &= mask

            values.append(value)

        return mask, values[0] if len(values) == 1 else tuple(values)

    def _level(self, mask: int) -> dict[IndexKey, Entry]:
        for level_mask, level in self.levels:
            if level_mask == mask:
                return level

        fresh: dict[IndexKey, Entry] = {}
        # A longer prefix is a larger mask.
        insort(self.levels, (mask, fresh), key=lambda level: -level[0])
        return fresh

    def _unlink_prefix(self, match: Match) -> None:
        mask, index = self._prefix(match)
        level = self._level(mask)
        del level[index]

        # An empty level would cost every lookup a step.
        if not level:
            self.levels.remove((mask, level))


class Table:
    """The entries of one table, as the control plane sees them."""

    def __init__(self, spec: TableSpec, index: Index | None = None) -> None:
        self.spec = spec
        self.kind = lookup_kind(spec)
        self.entries: dict[tuple[Match, int], Entry] = {}
        self.index: Index = index or PythonIndex(spec)
        self.default: Entry = (NO_ACTION, (), self.index.record((), 0))
        # Else machine code would read the zeros of its memory as action 0.
        self.index.set_default(self.default)
        self.initial_default: Entry = self.default
        self.is_const = False
        # How often entries have come or gone, for those who keep lists of them.
        self.changes = 0

    def __iter__(self) -> Iterator[Entry]:
        """Iterate over the entries in the order in which they were inserted."""
        return iter(self.entries.values())

    def insert(self, match: Match, priority: int, action: int, data: tuple[int, ...]) -> Entry:
        """Add an entry; ALREADY_EXISTS and RESOURCE_EXHAUSTED are EntryErrors."""
        key = (match, priority)
        if key in self.entries:
            raise EntryError(Code.ALREADY_EXISTS, "an entry with this match already exists")

        if len(self.entries) >= self.spec.size:
            raise EntryError(
                Code.RESOURCE_EXHAUSTED, f"the table is full: {self.spec.size} entries"
            )

        entry = (action, data, self.index.record(match, priority))
        self.entries[key] = entry
        self.changes += 1
        self.index.add(entry)

        return entry

    def find(self, match: Match, priority: int) -> Entry:
        """Return an entry or raise NOT_FOUND."""
        entry = self.entries.get((match, priority))
        if entry is None:
            raise EntryError(Code.NOT_FOUND, "no entry with this match")

        return entry

    def modify(self, match: Match, priority: int, action: int, data: tuple[int, ...]) -> Entry:
        """Replace the action of an entry in one step: no packet sees the table without it."""
        # The record stays: counters, idle time and metadata survive a new action.
        old = self.find(match, priority)
        entry = (action, data, old[2])
        self.entries[match, priority] = entry
        self.index.replace(old, entry)

        return entry

    def delete(self, match: Match, priority: int) -> Entry:
        """Remove an entry and return it."""
        entry = self.find(match, priority)
        del self.entries[match, priority]
        self.changes += 1
        self.index.remove(entry)

        return entry

    def declare_default(self, action: int, data: tuple[int, ...]) -> None:
        """Set the default entry that the program declares, to which a reset goes back."""
        self.set_default(action, data)
        self.initial_default = self.default

    def set_default(self, action: int, data: tuple[int, ...]) -> None:
        """Replace the default entry."""
        self.default = (action, data, self.default[2])
        self.index.set_default(self.default)


def exact_key(match: Match) -> IndexKey:
    """Return an exact match as a dict's key: no tuple around a single value."""
    values = tuple(value for value, _ in match)
    return values[0] if len(values) == 1 else values


def _rank(row: Row) -> int:
    record: Record = row[-1][2]
    return -record.priority


def needs_priority(spec: TableSpec) -> bool:
    """Return whether the entries of a table are ordered by priority."""
    return any(key.kind in ("ternary", "range", "optional") for key in spec.key)


def prefix_mask(length: int, bits: int) -> int:
    """Return the mask of a prefix of `length` of `bits` bits."""
    return (1 << bits) - (1 << bits - length)


def row_of(keys: Sequence[KeyField], entry: Entry) -> Row:
    """Return (mask, value, low, high, ..., entry): maskable fields in one integer, then ranges."""
    mask = value = 0
    ranges: list[int] = []
    for key, (first, second) in zip(keys, entry[2].match, strict=True):
        if key.kind == "range":
            ranges += (first, second)
            continue

        bits = _mask_of(key, second)
        mask = mask << key.bits | bits
        value = value << key.bits | first & bits

    return (mask, value, *ranges, entry)


def _mask_of(key: KeyField, second: int) -> int:
    if key.kind == "exact":
        return (1 << key.bits) - 1

    return prefix_mask(second, key.bits) if key.kind == "lpm" else second
