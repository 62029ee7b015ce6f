"""Registers, counters, meters, and what an entry counts."""

from __future__ import annotations

import ast
from typing import Any

from llvmlite import ir

from emulation.softswitch.codegen import names
from emulation.softswitch.native import context as at
from emulation.softswitch.native.build import load_word, word, words_at
from emulation.softswitch.native.calls import Calls
from emulation.softswitch.native.forms import (
    memory_bits,
    number_of,
)
from emulation.softswitch.native.values import (
    I64,
    WORD_BITS,
    Number,
    UnsupportedError,
    alignment,
    as_type,
)


class Cells(Calls):
    """Translates the access to arrays and records."""

    def _register_cell(self, number: int, index: ast.expr) -> Any:
        """Return the address of a cell; the program has looked whether the index is inside."""
        array = self._shared.program.registers[number]
        place = self._number(index)
        offset = as_type(self._b, place, I64)

        # And still: whatever the program did, nothing beyond the array is touched.
        if place.is_signed or 1 << place.bits > array.size:
            last = word(max(array.size - 1, 0))
            is_inside = self._b.icmp_unsigned("<=", offset, last)
            offset = self._b.select(is_inside, offset, last)

        address = load_word(self._b, self._context, self._places.registers + number)
        kind = ir.IntType(memory_bits(array.bits))
        if kind.width <= WORD_BITS:
            return self._b.gep(self._b.inttoptr(address, kind.as_pointer()), [offset])

        # Cells follow each other word by word, while LLVM would leave room between wide ones.
        first = self._b.mul(offset, word(kind.width // WORD_BITS))
        return self._b.bitcast(self._b.gep(words_at(self._b, address), [first]), kind.as_pointer())

    def _store_cell(self, target: ast.Subscript, value: ast.expr) -> None:
        assert isinstance(target.value, ast.Name)
        number = number_of(target.value.id, "R")
        bits = self._shared.program.registers[number].bits
        found = self._number(value)
        cell = self._register_cell(number, target.slice)
        type_ = ir.IntType(memory_bits(bits))
        self._b.store(as_type(self._b, found, type_), cell, align=alignment(type_))

    def _store_record(self, target: ast.Attribute, value: ast.expr) -> None:
        if target.attr != "last_hit_ps":
            raise UnsupportedError(ast.unparse(target))

        now = as_type(self._b, self._number(value), I64)
        self._b.store(now, self._record_word(at.LAST_HIT))

    def _record_word(self, place: int) -> Any:
        entry = words_at(self._b, self._b.load(self._entry))
        return self._b.gep(entry, [word(place)])

    def _assign_result(self, node: ast.expr) -> None:
        """Translate what `r` is assigned: an entry's record or a random number."""
        match node:
            case ast.Subscript(value=ast.Name(id=names.ENTRY)):
                # The record is the entry itself, here.
                return
            case ast.Subscript(value=ast.Subscript(value=ast.Name(id=name))) if name[0] == "D":
                self._b.store(self._descriptor(number_of(name, "D"), at.ENTRIES), self._entry)
            case ast.Call(func=ast.Name(id=names.RANDOM), args=[low, high]):
                self._temporary[names.RESULT] = self._drawn(low, high)
            case ast.Call(func=ast.Attribute(attr="execute")):
                self._temporary[names.RESULT] = self._metered(node)
            case _:
                raise UnsupportedError(self._text(node))

    def _drawn(self, low: ast.expr, high: ast.expr) -> Number:
        bounds = [self._number(bound) for bound in (low, high)]
        if any(bound.is_signed or bound.bits > 62 for bound in bounds):
            raise UnsupportedError("random numbers of more than 62 bits")

        kind = ir.FunctionType(I64, [I64, I64, I64]).as_pointer()
        draw = self._b.inttoptr(load_word(self._b, self._context, at.DRAW), kind)
        state = load_word(self._b, self._context, at.DRAW_STATE)
        value = self._b.call(draw, [state, *(as_type(self._b, bound, I64) for bound in bounds)])
        return Number(value, max(bound.bits for bound in bounds) or 1)

    def _assign_cell(self, node: ast.expr) -> None:
        assert isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
        number = number_of(node.value.id, "C")
        array = self._shared.program.counters[number]
        place = as_type(self._b, self._number(node.slice), I64)
        last = word(max(array.size - 1, 0))
        place = self._b.select(self._b.icmp_unsigned("<=", place, last), place, last)
        address = load_word(self._b, self._context, self._places.counters + number)
        self._cell = self._b.gep(words_at(self._b, address), [self._b.mul(place, word(2))])

    def _metered(self, node: ast.Call) -> Number:
        """Return the colour that a meter gives the packet."""
        assert isinstance(node.func, ast.Attribute)
        meter = node.func.value
        match meter:
            case ast.Attribute():
                address = load_word(self._b, self._record_word(at.METER), 0)
            case ast.Subscript(value=ast.Name(id=name)):
                number = number_of(name, "M")
                last = word(max(self._shared.program.meters[number].size - 1, 0))
                index = as_type(self._b, self._number(meter.slice), I64)
                index = self._b.select(self._b.icmp_unsigned("<=", index, last), index, last)
                first = load_word(self._b, self._context, self._places.meters + number)
                offset = self._b.mul(index, word(8 * at.METER_WORDS))
                address = self._b.add(first, offset)
            case _:
                raise UnsupportedError(self._text(node))

        now, length = (as_type(self._b, self._number(part), I64) for part in node.args)
        color = self._b.call(
            self._shared.helpers.metered(), [words_at(self._b, address), now, length]
        )
        return Number(color, 2)

    def _grow(self, place: Any, by: ast.expr) -> None:
        amount = as_type(self._b, self._number(by), I64)
        self._b.store(self._b.add(self._b.load(place), amount), place)
