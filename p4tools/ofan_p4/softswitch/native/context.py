"""The switch's state in memory: the words of a context, an entry, a level, a row.

A context is an array of 64-bit words, one per switch: numbers, and the addresses of the arrays that
control plane and dataplane share. The translator and `memory` both take the places from here.
"""

from __future__ import annotations

from dataclasses import dataclass

from ofan_p4.softswitch.codegen.program import Program, TableSpec, lookup_kind

# The first words of a context: the egress_spec that means drop; a C function that draws a number,
# `int64 draw(int64 state, int64 low, int64 high)`, and its first argument; the address of the
# values that a returning packet brings, 0 for a fresh packet; the address of the request words; a C
# function that takes a log message, `void log(int64 number, int64 *values)`.
DROP, DRAW, DRAW_STATE, RESUME, REQUESTS, LOG = range(6)
FIRST_ARRAY = 6

# The words of a table's descriptor: its entries; of an exact one the slots of its hash table and
# their number less 1; of others its levels or rows and how many there are. A table that is filled
# at once may be dense instead: its levels (0: it is not), and its cells.
ENTRIES, SLOTS, SLOT_MASK, LEVELS, LEVEL_COUNT, DENSE, DENSE_CELLS = range(7)
TABLE_WORDS = 7

# The words of a level of a dense table (`dense`): which bits all its keys share, and their values;
# then two runs of bits: the shift and the ones of the first, how far left of the second it stands,
# the shift and the ones of that. A cell is the index of an entry plus 1, 0 for none, or, with this
# bit, the number of the first cell of a node of the next level.
SHARED, SHARED_VALUE, RUN_SHIFT, RUN_ONES, RUN_ABOVE, LOW_SHIFT, LOW_ONES = range(7)
DENSE_WORDS = 8
DENSE_NODE = 1 << 31

# The words of an entry; its arguments follow. Entry 0 is the table's default. A direct meter is the
# address of a meter's words, 0 without a meter.
ACTION, RANK, PACKETS, OCTETS, LAST_HIT, METER = range(6)
ENTRY_WORDS = 6

# The words of a meter: whether it is configured and counts bytes, then the words of both buckets
# (tokens and bursts have two words each), then packets and bytes of every colour.
METER_ON, METER_BYTES = range(2)
METER_COMMITTED = 2
RATE, BURST, TOKENS, LAST = 0, 1, 3, 5
BUCKET_WORDS = 6
METER_PEAK = METER_COMMITTED + BUCKET_WORDS
METER_COLORS = METER_PEAK + BUCKET_WORDS
METER_WORDS = METER_COLORS + 6

# The words of a CRC with parameters: the remainder to begin with, lowest bit first; the number that
# the result is combined with; whether bytes, and whether the remainder, are reflected. Its table of
# 256 words follows.
CRC_START, CRC_FINAL_XOR, CRC_REFLECTS_DATA, CRC_REFLECTS_REMAINDER, CRC_TABLE = range(5)
CRC_WORDS = CRC_TABLE + 256

# The words of an action profile's descriptor: slots of members by number, and the entries of their
# actions, the first of which does nothing; the same for groups. A group's words: the address of its
# choices, which are entries, too, and their number.
MEMBER_SLOTS, MEMBER_MASK, MEMBERS, GROUP_SLOTS, GROUP_MASK, GROUPS = range(6)
PROFILE_WORDS = 6
GROUP_CHOICES, GROUP_SIZE = range(2)
GROUP_WORDS = 2

# The words of a value set's descriptor, and of each part of a member: low, high, mask.
SET_MEMBERS, SET_SIZE = range(2)
SET_WORDS = 2
PART_WORDS = 3

# The words of a level, which are followed by those of its mask: the best rank in it, slots.
LEVEL_RANK, LEVEL_SLOTS, LEVEL_SLOT_MASK = range(3)
LEVEL_WORDS = 3

# Of a row: the index of its entry; mask, value and the ends of ranges follow.
ROW_WORDS = 1

WORD = (1 << 64) - 1
# Above every rank (priorities have 31 bits, an order of insertion 32).
NO_RANK = (1 << 63) - 1
# Odd, so that multiplying loses nothing; the golden ratio of 2**64 spreads neighbours (Knuth).
HASH_FACTOR = 0x9E3779B97F4A7C15


def words_for(bits: int) -> int:
    """Return how many 64-bit words hold so many bits."""
    return max(1, -(-bits // 64))


@dataclass(frozen=True, slots=True)
class TablePlaces:
    """The sizes of one table's parts, in words."""

    kind: str
    key_words: int
    range_words: tuple[int, ...]
    entry_words: int
    argument_words: dict[int, tuple[int, ...]]

    @property
    def slot_words(self) -> int:
        """The key and the index of its entry plus 1; 0 is a slot that is free."""
        return self.key_words + 1

    @property
    def level_words(self) -> int:
        """A level with its mask."""
        return LEVEL_WORDS + self.key_words

    @property
    def row_words(self) -> int:
        """A row with mask, value and ranges."""
        return ROW_WORDS + 2 * self.key_words + 2 * sum(self.range_words)


def table_places(program: Program, table: TableSpec) -> TablePlaces:
    """Return the sizes of a table's parts."""
    arguments = {
        number: tuple(map(words_for, program.actions[number].parameter_bits))
        for number in table.actions
    }
    # A member or group of an action profile has one argument, its number.
    size = ENTRY_WORDS + max([1, *map(sum, arguments.values())])
    ranged = tuple(words_for(key.bits) for key in table.key if key.kind == "range")
    masked = sum(key.bits for key in table.key if key.kind != "range")
    return TablePlaces(lookup_kind(table), words_for(masked), ranged, size, arguments)


@dataclass(frozen=True, slots=True)
class Places:
    """Where in the context everything of a program is; `choice_words`: an entry of a profile."""

    registers: int
    counters: int
    meters: int
    custom_crcs: int
    profiles: int
    value_sets: int
    tables: int
    size: int
    of_tables: tuple[TablePlaces, ...]
    choice_words: int

    def table(self, number: int) -> int:
        """Return the first word of a table's descriptor."""
        return self.tables + number * TABLE_WORDS

    def profile(self, number: int) -> int:
        """Return the first word of an action profile's descriptor."""
        return self.profiles + number * PROFILE_WORDS

    def value_set(self, number: int) -> int:
        """Return the first word of a value set's descriptor."""
        return self.value_sets + number * SET_WORDS


def places(program: Program) -> Places:
    """Return the context of a program."""
    counters = FIRST_ARRAY + len(program.registers)
    meters = counters + len(program.counters)
    custom_crcs = meters + len(program.meters)
    profiles = custom_crcs + len(program.custom_crcs())
    value_sets = profiles + len(program.profiles()) * PROFILE_WORDS
    tables = value_sets + len(program.value_sets) * SET_WORDS
    specs = program.tables()
    arguments = [sum(map(words_for, action.parameter_bits)) for action in program.actions.values()]
    return Places(
        registers=FIRST_ARRAY,
        counters=counters,
        meters=meters,
        custom_crcs=custom_crcs,
        profiles=profiles,
        value_sets=value_sets,
        tables=tables,
        size=tables + len(specs) * TABLE_WORDS,
        of_tables=tuple(table_places(program, spec) for spec in specs),
        choice_words=ENTRY_WORDS + max([1, *arguments]),
    )
