"""Bytes of the frame that are read as numbers, and numbers that are written as bytes."""

from __future__ import annotations

from typing import Any, ClassVar

from llvmlite import ir

from ofan_p4.softswitch.codegen import names, packet_nodes
from ofan_p4.softswitch.codegen.statements import Unpack
from ofan_p4.softswitch.native.build import word
from ofan_p4.softswitch.native.expressions import Expressions
from ofan_p4.softswitch.native.scope import CodeRules, NumberRules
from ofan_p4.softswitch.native.shared import Place, struct_parts
from ofan_p4.softswitch.native.values import (
    I8,
    I32,
    I64,
    Number,
    as_type,
    container,
)


class Frames(Expressions):
    """Translator of `struct` and `int.from_bytes`."""

    def _from_bytes(self, node: packet_nodes.FromBytes, _demand: int | None) -> Number:
        source = self._bytes(node.source)
        return self._read(self._b.sext(source.offset, I64), node.size)

    def _frame_byte(self, node: packet_nodes.FrameByte, _demand: int | None) -> Number:
        offset = as_type(self._b, self._number(node.offset), I64)
        byte = self._b.load(self._b.gep(self._arguments[names.DATA], [offset]))
        return Number(self._b.zext(byte, I32), 8)

    def _read(self, offset: Any, size: int) -> Number:
        """Return the big-endian number of `size` bytes of the frame."""
        address = self._b.gep(self._arguments[names.DATA], [offset])
        return Number(self._loaded(address, size), 8 * size)

    def _loaded(self, word_index: Any, size: int) -> Any:
        wide = container(8 * size)
        if size % 2 and size > 1:
            # LLVM swaps even numbers of bytes only.
            high = self._b.zext(self._loaded(word_index, size - 1), wide)
            last = self._b.zext(self._b.load(self._b.gep(word_index, [word(size - 1)])), wide)
            return (
                self._b.or_(self._b.shl(high, ir.Constant(wide, 8)), last)
                if (high.type.width == wide.width)
                else None
            )

        type_ = ir.IntType(8 * size)
        # Frames are big-endian and lie anywhere in memory; the machine is little-endian.
        value = self._b.load(self._b.bitcast(word_index, type_.as_pointer()), align=1)
        if size > 1:
            value = self._b.bswap(value)

        return value if type_.width == wide.width else self._b.zext(value, wide)

    def _unpack(self, node: Unpack) -> None:
        """Read a struct, all of it before the first variable is set."""
        start = as_type(self._b, self._number(node.offset), I64)
        parts: list[Number | Place] = []
        for code, size, offset in struct_parts(node.format):
            position = self._b.add(start, word(offset))
            if code == "s":
                # Bytes are not copied: the variable has their offset in the frame.
                parts.append(Place(self._b.trunc(position, I32), ir.Constant(I32, size)))
            else:
                parts.append(self._read(position, size))

        for target, part in zip(node.targets, parts, strict=True):
            self._set(target, part)

    def _pack(self, node: packet_nodes.Pack, buffer: Any, start: Any) -> int:
        """Write the bytes of a struct's `pack(...)`; return their number."""
        parts = struct_parts(node.format)
        # The parts lie one behind the other, as `struct` packs them without alignment.
        for (code, size, offset), source in zip(parts, node.parts, strict=True):
            if not size:
                continue

            address = self._b.gep(buffer, [self._b.add(start, word(offset))])
            if code == "s" and not isinstance(source, packet_nodes.ToBytes):
                self._copy(self._bytes(source), address, size)
                continue

            # `value.to_bytes(...)` in Python: here the number itself is written.
            inner = source.value if isinstance(source, packet_nodes.ToBytes) else source
            number = as_type(self._b, self._number(inner), ir.IntType(8 * size))
            self._write(number, address, size)

        return sum(size for _, size, _ in parts)

    def _write(self, number: Any, word_index: Any, size: int) -> None:
        # An odd number of bytes is written as the even rest and the last byte, as it is read.
        if size % 2 and size > 1:
            type_ = number.type
            last = self._b.trunc(number, I8)
            rest = self._b.trunc(
                self._b.lshr(number, ir.Constant(type_, 8)), ir.IntType(8 * (size - 1))
            )
            self._write(rest, word_index, size - 1)
            self._b.store(last, self._b.gep(word_index, [word(size - 1)]))
            return

        if size > 1:
            number = self._b.bswap(number)

        self._b.store(number, self._b.bitcast(word_index, number.type.as_pointer()), align=1)

    def _copy(self, source: Place, word_index: Any, size: int) -> None:
        """Copy bytes of known length out of the frame, or zeros."""
        if not size:
            return

        type_ = ir.IntType(8 * size)
        to = self._b.bitcast(word_index, type_.as_pointer())
        # A negative offset stands for zeros (`variables`).
        is_real = self._b.icmp_signed(">=", source.offset, ir.Constant(I32, 0))
        with self._b.if_else(is_real) as (then, otherwise):
            with then:
                origin = self._b.gep(
                    self._arguments[names.DATA], [self._b.sext(source.offset, I64)]
                )
                value = self._b.load(self._b.bitcast(origin, type_.as_pointer()), align=1)
                self._b.store(value, to, align=1)
            with otherwise:
                self._b.store(ir.Constant(type_, 0), to, align=1)

    NUMBERS: ClassVar[NumberRules] = {
        packet_nodes.FromBytes: _from_bytes,
        packet_nodes.FrameByte: _frame_byte,
    }
    CODE: ClassVar[CodeRules] = {Unpack: _unpack}
