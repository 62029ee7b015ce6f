"""Registers, counters, meters, value sets and action profiles in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ofan_p4.softswitch.base.crcs import CustomCrc, Parameters
from ofan_p4.softswitch.base.units import PS_PER_SECOND
from ofan_p4.softswitch.codegen.program import Array, Program
from ofan_p4.softswitch.native import context
from ofan_p4.softswitch.native.context import WORD, words_for
from ofan_p4.softswitch.native.slots import Slots, Words, address, words_of
from ofan_p4.softswitch.state.meters import Meter, Rates
from ofan_p4.softswitch.state.profiles import NOTHING, ActionProfile, Choice
from ofan_p4.softswitch.state.tables import Match
from ofan_p4.softswitch.state.valuesets import ValueMatch, ValueSetState

T = TypeVar("T")


class Cells(Sequence[int]):
    """A register array: integers in memory of the smallest size that holds them."""

    def __init__(self, array: Array) -> None:
        self._bits = array.bits
        self._words = words_for(array.bits) if array.bits > 32 else 0
        if self._words:
            self.memory: NDArray[Any] = np.zeros((max(array.size, 1), self._words), np.uint64)
        else:
            # The same types as machine code stores (`values.stored`).
            kind = next(
                kind
                for bits, kind in ((8, np.uint8), (16, np.uint16), (32, np.uint32))
                if array.bits <= bits
            )
            self.memory = np.zeros(max(array.size, 1), kind)

        self._size = array.size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._size))]
        if not self._words:
            return int(self.memory[: self._size][index])

        # Wide cells are words, the lowest first.
        return sum(int(part) << 64 * i for i, part in enumerate(self.memory[: self._size][index]))

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            for i, part in zip(range(*index.indices(self._size)), value, strict=True):
                self[i] = part

            return

        # Cut, as a write of the program is.
        value &= (1 << self._bits) - 1
        cells = self.memory[: self._size]
        cells[index] = words_of(value, self._words) if self._words else value

    def __iter__(self) -> Iterator[int]:
        return (self[i] for i in range(self._size))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (list, Cells)) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


class Views(Sequence[T]):
    """The rows of an array as objects, each made when it is first asked for.

    Programs declare hundreds of thousands of counters, of which few are ever looked at.
    """

    def __init__(self, rows: NDArray[Any], view: Callable[[NDArray[Any]], T]) -> None:
        self._rows = rows
        self._view = view
        self._made: dict[int, T] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]

        number = range(len(self))[index]
        if number not in self._made:
            self._made[number] = self._view(self._rows[number])

        return self._made[number]


class Counts(Sequence[int]):
    """A counter's packets and bytes."""

    def __init__(self, row: NDArray[np.int64]) -> None:
        self._row = row

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: Any) -> Any:
        return self._row[index].tolist()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._row[index] = value

    def __eq__(self, other: object) -> bool:
        return bool(self._row.tolist() == other)

    __hash__ = None  # type: ignore[assignment]


class NativeMeter(Meter):
    """A meter in memory that machine code executes."""

    def __init__(self, by_bytes: bool, words: Words | None = None) -> None:
        self.words: Words = (
            np.zeros(context.METER_WORDS, dtype=np.uint64) if words is None else words
        )
        self.words[context.METER_BYTES] = by_bytes
        # A meter may have counted before its view is made: a new one begins with zeros.
        counted = self.words.copy()
        super().__init__(by_bytes)
        self.words[:] = counted

    @property
    def colors(self) -> list[list[int]]:
        """The (packets, bytes) of every colour."""
        counts: list[list[int]] = self.words[context.METER_COLORS :].reshape(3, 2).tolist()
        return counts

    @colors.setter
    def colors(self, counts: list[list[int]]) -> None:
        self.words[context.METER_COLORS :] = [number for pair in counts for number in pair]

    def configure(self, rates: Rates | None) -> None:
        """Set the rates, with full buckets; None switches the meter off."""
        self.rates = rates
        self.words[context.METER_ON] = rates is not None
        if rates is None:
            return

        for first, rate, burst in (
            (context.METER_COMMITTED, rates.cir, rates.cburst),
            (context.METER_PEAK, rates.pir, rates.pburst),
        ):
            # Tokens are counted in units of 1/PS_PER_SECOND, so that a refill needs no division.
            tokens = words_of(burst * PS_PER_SECOND, 2)
            self.words[first : first + context.BUCKET_WORDS] = [rate, *tokens, *tokens, WORD]


class NativeCrc(CustomCrc):
    """A CRC with parameters, in memory that machine code reads."""

    def __init__(self, algorithm: str) -> None:
        self.words: Words = np.zeros(context.CRC_WORDS, dtype=np.uint64)
        super().__init__(algorithm)

    def configure(self, parameters: Parameters) -> None:
        """Compute with these parameters from now on."""
        super().configure(parameters)
        self.words[context.CRC_START] = self.start
        self.words[context.CRC_FINAL_XOR] = parameters.final_xor
        self.words[context.CRC_REFLECTS_DATA] = parameters.reflect_data
        self.words[context.CRC_REFLECTS_REMAINDER] = parameters.reflect_remainder
        self.words[context.CRC_TABLE :] = self.table


class NativeValueSet(ValueSetState):
    """A value set with members that machine code compares."""

    def __init__(self, descriptor: Words) -> None:
        super().__init__()
        self._descriptor = descriptor

    def replace(self, members: Sequence[tuple[Match, ValueMatch]]) -> None:
        """Replace all members."""
        super().replace(members)
        # A negative mask stands for all bits.
        rows = [[part & WORD for parts in match for part in parts] for _, match in members]
        self._rows = np.array(rows, dtype=np.uint64)
        self._descriptor[context.SET_MEMBERS] = address(self._rows)
        self._descriptor[context.SET_SIZE] = len(rows)


class NativeProfile(ActionProfile):
    """An action profile: machine code chooses from its members and groups."""

    def __init__(
        self,
        program: Program,
        size: int,
        choice_words: int,
        descriptor: Words,
        is_up: Callable[[int], bool],
        has_port: Callable[[int], bool],
    ) -> None:
        super().__init__(size, is_up, has_port)
        self._program = program
        self._choice_words = choice_words
        self._descriptor = descriptor
        self.is_settled = False

    def _changed(self) -> None:
        # Changes often come many at a time: the arrays are built once, before the next packet.
        self.is_settled = False

    def settle(self) -> None:
        """Write members and groups, as they are now, to the memory of machine code."""
        self.is_settled = True
        # Machine code has only addresses: Python must keep their arrays.
        self._kept: list[Any] = []
        members = Slots(1)
        for i, number in enumerate(self.members):
            members.put([number & WORD], i)

        groups = Slots(1)
        rows: list[list[int]] = []
        for i, (number, group) in enumerate(self.groups.items()):
            groups.put([number & WORD], i)
            choices = self._entries(group.choices)
            rows.append([address(choices), len(group.choices)])

        # The first entry does nothing: a missing member or group leads there.
        entries = self._entries([NOTHING, *self.members.values()])
        table = np.array(rows or [[0, 0]], dtype=np.uint64)
        self._kept += [members, groups, table]
        self._descriptor[:] = [
            address(members.array),
            members.mask,
            address(entries),
            address(groups.array),
            groups.mask,
            address(table),
        ]

    def _entries(self, choices: Sequence[Choice]) -> Words:
        entries: Words = np.zeros((max(1, len(choices)), self._choice_words), dtype=np.uint64)
        for row, (action, data) in zip(entries, choices, strict=False):
            row[context.ACTION] = action & WORD
            bits = self._program.actions[action].parameter_bits if data else ()
            argument_words = [
                part
                for size, value in zip(bits, data, strict=True)
                for part in words_of(value, words_for(size))
            ]
            row[context.ENTRY_WORDS : context.ENTRY_WORDS + len(argument_words)] = argument_words

        self._kept.append(entries)
        return entries
