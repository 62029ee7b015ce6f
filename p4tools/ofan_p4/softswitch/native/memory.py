"""The memory that machine code and control plane share: one switch's arrays, and views of them.

All state is in arrays of numbers, with their addresses in the context (`native.context`). The
control plane changes it between packets, as a switch handles one thing at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ofan_p4.softswitch.codegen.program import Program
from ofan_p4.softswitch.native import context
from ofan_p4.softswitch.native.context import Places
from ofan_p4.softswitch.native.indexes import NativeIndex
from ofan_p4.softswitch.native.resources import (
    Cells,
    Counts,
    NativeCrc,
    NativeMeter,
    NativeProfile,
    NativeValueSet,
    Views,
)
from ofan_p4.softswitch.native.slots import Words, address


class Memory:
    """All that the machine code of one switch reads and writes."""

    def __init__(
        self,
        program: Program,
        places: Places,
        drop_port: int,
        is_up: Callable[[int], bool],
        has_port: Callable[[int], bool],
    ) -> None:
        self.context: Words = np.zeros(places.size, dtype=np.uint64)
        self.context[context.DROP] = drop_port
        self.registers = [Cells(array) for array in program.registers]
        counts = [np.zeros((max(array.size, 1), 2), np.int64) for array in program.counters]
        meters = [
            np.zeros((max(array.size, 1), context.METER_WORDS), np.uint64)
            for array in program.meters
        ]
        for array, meter_words in zip(program.meters, meters, strict=True):
            meter_words[:, context.METER_BYTES] = array.kind == "bytes"

        self.counters = [
            Views(rows[: array.size], Counts)
            for array, rows in zip(program.counters, counts, strict=True)
        ]
        self.meters = [
            Views(rows[: array.size], partial(NativeMeter, array.kind == "bytes"))
            for array, rows in zip(program.meters, meters, strict=True)
        ]

        self.custom_crcs = [NativeCrc(item.algorithm) for item in program.custom_crcs()]

        # Referenced here so that they stay alive: the context only has their addresses.
        crcs = (crc.words for crc in self.custom_crcs)
        self._arrays = [*(cells.memory for cells in self.registers), *counts, *meters, *crcs]
        first = places.registers
        self.context[first : first + len(self._arrays)] = [*map(address, self._arrays)]

        self.value_sets = [
            # Each has its own words of the context, which it keeps up to date.
            NativeValueSet(self._words(places.value_set(i), context.SET_WORDS))
            for i in range(len(program.value_sets))
        ]
        self.profiles = [
            NativeProfile(
                program,
                profile.size,
                places.choice_words,
                descriptor=self._words(places.profile(i), context.PROFILE_WORDS),
                is_up=is_up,
                has_port=has_port,
            )
            for i, profile in enumerate(program.profiles())
        ]
        self.indexes = [
            NativeIndex(spec, shape, self._words(places.table(i), context.TABLE_WORDS))
            for i, (spec, shape) in enumerate(zip(program.tables(), places.of_tables, strict=True))
        ]

    def _words(self, first: int, count: int) -> Words:
        return self.context[first : first + count]

    def settle(self) -> None:
        """Publish all changes of the control plane; called before every batch of packets."""
        for profile in self.profiles:
            if not profile.is_settled:
                profile.settle()

    @property
    def address(self) -> int:
        """The address of the context."""
        return address(self.context)
