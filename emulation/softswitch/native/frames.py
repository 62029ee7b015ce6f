"""Bytes of the frame that are read as numbers, and numbers that are written as bytes."""

from __future__ import annotations

import ast
from typing import Any

from llvmlite import ir

from emulation.softswitch.codegen import names
from emulation.softswitch.native.build import word
from emulation.softswitch.native.expressions import Expressions
from emulation.softswitch.native.forms import (
    distance,
    is_to_bytes,
)
from emulation.softswitch.native.shared import (
    Bytes,
    struct_parts,
)
from emulation.softswitch.native.values import (
    I8,
    I32,
    I64,
    Number,
    UnsupportedError,
    as_type,
    container,
    cut,
)


class Frames(Expressions):
    """Translates what `struct` and `int.from_bytes` do."""

    def _from_bytes(self, node: ast.Call, demand: int | None) -> Number:
        assert isinstance(node.func, ast.Attribute)
        if node.func.attr != "from_bytes":
            raise UnsupportedError(self._text(node))

        source = node.args[0]
        found = self._value(source)
        if not isinstance(found, Bytes):
            raise UnsupportedError(self._text(node))

        size = self._known_size(source, found)
        offset = self._b.sext(found.offset, I64)
        number = self._read(offset, size)
        return number if demand is None else cut(self._b, number, demand)

    def _known_size(self, node: ast.expr, found: Bytes) -> int:
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            assert node.slice.upper is not None
            return distance(node.slice.lower, node.slice.upper)
        if isinstance(found.size, ir.Constant):
            return int(found.size.constant)

        raise UnsupportedError(self._text(node))

    def _read(self, offset: Any, size: int) -> Number:
        """Return the big-endian number of `size` bytes of the frame."""
        place = self._b.gep(self._given[names.DATA], [offset])
        return Number(self._loaded(place, size), 8 * size)

    def _loaded(self, place: Any, size: int) -> Any:
        wide = container(8 * size)
        if size % 2 and size > 1:
            # LLVM swaps even numbers of bytes only.
            high = self._b.zext(self._loaded(place, size - 1), wide)
            last = self._b.zext(self._b.load(self._b.gep(place, [word(size - 1)])), wide)
            return (
                self._b.or_(self._b.shl(high, ir.Constant(wide, 8)), last)
                if (high.type.width == wide.width)
                else None
            )

        type_ = ir.IntType(8 * size)
        value = self._b.load(self._b.bitcast(place, type_.as_pointer()), align=1)
        if size > 1:
            value = self._b.bswap(value)

        return value if type_.width == wide.width else self._b.zext(value, wide)

    def _unpacked(self, node: ast.Call) -> list[Number | Bytes]:
        """Return what a struct's `unpack_from(data, offset)` reads."""
        assert isinstance(node.func, ast.Name)
        start = as_type(self._b, self._number(node.args[1]), I64)
        found: list[Number | Bytes] = []
        for code, size, offset in struct_parts(self._shared.constants[node.func.id]):
            place = self._b.add(start, word(offset))
            if code == "s":
                at_ = self._b.trunc(place, I32)
                found.append(Bytes(at_, ir.Constant(I32, size)))
            else:
                found.append(self._read(place, size))

        return found

    def _pack(self, node: ast.Call, room: Any, start: Any) -> int:
        """Write what a struct's `pack(...)` makes; return how many bytes that is."""
        assert isinstance(node.func, ast.Name)
        parts = struct_parts(self._shared.constants[node.func.id])
        for (code, size, offset), source in zip(parts, node.args, strict=True):
            if not size:
                continue

            place = self._b.gep(room, [self._b.add(start, word(offset))])
            if code == "s" and not is_to_bytes(source):
                found = self._value(source)
                if not isinstance(found, Bytes):
                    raise UnsupportedError(self._text(source))

                self._copy(found, place, size)
                continue

            inner = source.func.value if is_to_bytes(source) else source  # type: ignore[attr-defined]
            number = as_type(self._b, self._number(inner), ir.IntType(8 * size))
            self._write(number, place, size)

        return sum(size for _, size, _ in parts)

    def _write(self, number: Any, place: Any, size: int) -> None:
        if size % 2 and size > 1:
            type_ = number.type
            last = self._b.trunc(number, I8)
            rest = self._b.trunc(
                self._b.lshr(number, ir.Constant(type_, 8)), ir.IntType(8 * (size - 1))
            )
            self._write(rest, place, size - 1)
            self._b.store(last, self._b.gep(place, [word(size - 1)]))
            return

        if size > 1:
            number = self._b.bswap(number)

        self._b.store(number, self._b.bitcast(place, number.type.as_pointer()), align=1)

    def _copy(self, found: Bytes, place: Any, size: int) -> None:
        """Copy bytes of known length out of the frame, or zeros."""
        if not size:
            return

        type_ = ir.IntType(8 * size)
        to = self._b.bitcast(place, type_.as_pointer())
        is_real = self._b.icmp_signed(">=", found.offset, ir.Constant(I32, 0))
        with self._b.if_else(is_real) as (then, otherwise):
            with then:
                origin = self._b.gep(self._given[names.DATA], [self._b.sext(found.offset, I64)])
                value = self._b.load(self._b.bitcast(origin, type_.as_pointer()), align=1)
                self._b.store(value, to, align=1)
            with otherwise:
                self._b.store(ir.Constant(type_, 0), to, align=1)
