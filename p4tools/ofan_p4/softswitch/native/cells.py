"""Registers, counters, meters, and the counts of entries."""

from __future__ import annotations

from typing import Any, ClassVar

from llvmlite import ir

from ofan_p4.softswitch.codegen import names, packet_nodes
from ofan_p4.softswitch.codegen.nodes import Expression
from ofan_p4.softswitch.codegen.statements import CountCell, CountEntry, Touch, UseRecord
from ofan_p4.softswitch.native import context
from ofan_p4.softswitch.native.build import load_word, word, words_at
from ofan_p4.softswitch.native.calls import Calls
from ofan_p4.softswitch.native.scope import CodeRules, NumberRules
from ofan_p4.softswitch.native.values import (
    I64,
    WORD_BITS,
    Limit,
    Number,
    alignment,
    as_type,
    beyond,
    container,
    stored,
)


class Cells(Calls):
    """Translator of the access to arrays and records."""

    def _register_cell(self, node: packet_nodes.Cell) -> Any:
        """Return the address of a cell; the program has looked whether the index is inside."""
        array = self._shared.program.registers[node.array]
        index = self._number(node.index)
        offset = as_type(self._b, index, I64)

        # And still: whatever the program did, nothing beyond the array is touched.
        if index.is_signed or 1 << index.bits > array.size:
            offset = self._inside(offset, array.size)

        address = load_word(self._b, self._context, self._places.registers + node.array)
        kind = stored(array.bits)
        width: Any = kind.width
        if width <= WORD_BITS:
            return self._b.gep(self._b.inttoptr(address, kind.as_pointer()), [offset])

        # Cells follow each other word by word, while LLVM would leave room between wide ones.
        first = self._b.mul(offset, word(width // WORD_BITS))
        return self._b.bitcast(self._b.gep(words_at(self._b, address), [first]), kind.as_pointer())

    def _inside(self, offset: Any, size: int) -> Any:
        """Return an index of an array, that of its last cell for one beyond it."""
        last = word(max(size - 1, 0))
        return self._b.select(self._b.icmp_unsigned("<=", offset, last), offset, last)

    def _cell(self, node: packet_nodes.Cell, _demand: int | None) -> Number:
        kind = stored(node.width)
        cell = self._b.load(self._register_cell(node), align=alignment(kind))
        wide = container(node.width)
        value = cell if kind.width == wide.width else self._b.zext(cell, wide)
        return Number(value, node.width)

    def _store_cell(self, target: packet_nodes.Cell, value: Expression) -> None:
        kind = stored(target.width)
        number = self._number(value)
        cell = self._register_cell(target)
        self._b.store(as_type(self._b, number, kind), cell, align=alignment(kind))

    def _touch(self, node: Touch) -> None:
        now = as_type(self._b, self._number(node.now), I64)
        self._b.store(now, self._record_word(context.LAST_HIT))

    def _use_record(self, node: UseRecord) -> None:
        # The record is the entry itself, here.
        if node.table is not None:
            self._b.store(self._descriptor(node.table, context.ENTRIES), self._entry)

    def _descriptor(self, table: int, slot: int) -> Any:
        """Return a word of a table's descriptor."""
        return load_word(self._b, self._context, self._places.table(table) + slot)

    def _count_entry(self, node: CountEntry) -> None:
        self._grow(self._record_word(context.PACKETS), word(1))
        self._grow(
            self._record_word(context.OCTETS), as_type(self._b, self._number(node.length), I64)
        )

    def _count_cell(self, node: CountCell) -> None:
        array = self._shared.program.counters[node.array]
        # As with registers: an index beyond the end counts in the last cell rather than elsewhere.
        index = self._inside(as_type(self._b, self._number(node.index), I64), array.size)
        address = load_word(self._b, self._context, self._places.counters + node.array)
        # A cell of a counter has two words: packets and bytes.
        cell = self._b.gep(words_at(self._b, address), [self._b.mul(index, word(2))])
        self._grow(self._b.gep(cell, [word(0)]), word(1))
        length = as_type(self._b, self._number(node.length), I64)
        self._grow(self._b.gep(cell, [word(1)]), length)

    def _grow(self, slot: Any, by: Any) -> None:
        self._b.store(self._b.add(self._b.load(slot), by), slot)

    def _drawn(self, node: packet_nodes.Draw, _demand: int | None) -> Number:
        bounds = [self._number(bound) for bound in (node.low, node.high)]
        if any(bound.is_signed or bound.bits > 62 for bound in bounds):
            raise beyond(Limit.RANDOM)

        kind = ir.FunctionType(I64, [I64, I64, I64]).as_pointer()
        draw = self._b.inttoptr(load_word(self._b, self._context, context.DRAW), kind)
        state = load_word(self._b, self._context, context.DRAW_STATE)
        value = self._b.call(draw, [state, *(as_type(self._b, bound, I64) for bound in bounds)])
        # A number between two bounds has at most the bits of the greater bound.
        return Number(value, max(bound.bits for bound in bounds) or 1)

    def _metered(self, node: packet_nodes.Metered, _demand: int | None) -> Number:
        size = self._shared.program.meters[node.array].size
        index = self._inside(as_type(self._b, self._number(node.index), I64), size)
        first = load_word(self._b, self._context, self._places.meters + node.array)
        return self._color(self._b.add(first, self._b.mul(index, word(8 * context.METER_WORDS))))

    def _directly_metered(self, _node: packet_nodes.DirectlyMetered, _demand: int | None) -> Number:
        return self._color(load_word(self._b, self._record_word(context.METER), 0))

    def _color(self, meter: Any) -> Number:
        """Return the colour that the meter at an address gives the packet."""
        now, length = self._arguments[names.NOW], self._arguments[names.PACKET_LENGTH]
        color = self._b.call(
            self._shared.helpers.metered(), [words_at(self._b, meter), now, length]
        )
        # Green, yellow, red: 0 to 2.
        return Number(color, 2)

    NUMBERS: ClassVar[NumberRules] = {
        packet_nodes.Cell: _cell,
        packet_nodes.Draw: _drawn,
        packet_nodes.Metered: _metered,
        packet_nodes.DirectlyMetered: _directly_metered,
    }
    CODE: ClassVar[CodeRules] = {
        Touch: _touch,
        UseRecord: _use_record,
        CountEntry: _count_entry,
        CountCell: _count_cell,
    }
