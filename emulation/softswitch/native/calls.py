"""The functions that generated code calls: operators of any size, checksums, hashes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from emulation.softswitch import hashes
from emulation.softswitch.codegen import names
from emulation.softswitch.native.build import folded, word
from emulation.softswitch.native.context import words_for
from emulation.softswitch.native.division_code import LIBRARY_BITS
from emulation.softswitch.native.forms import (
    constant_of,
    is_name,
    is_payload,
)
from emulation.softswitch.native.frames import Frames
from emulation.softswitch.native.shared import (
    Bytes,
    struct_parts,
)
from emulation.softswitch.native.values import (
    I8,
    I32,
    I64,
    WORD_BITS,
    Number,
    UnsupportedError,
    added,
    as_type,
    compared,
    constant,
    container,
    cut,
    selected,
    wrapped,
)


class Calls(Frames):
    """Translates calls; `emulation.softswitch.arithmetic` and `hashes` say what they mean."""

    def _call(self, node: ast.Call, demand: int | None) -> Number:
        function = node.func
        if isinstance(function, ast.Attribute):
            if isinstance(function.value, ast.Name) and function.attr == "matches":
                return Number(self._b.zext(self._in_set(node), I32), 1)

            return self._from_bytes(node, demand)

        assert isinstance(function, ast.Name)
        known: dict[str, Callable[[ast.Call, int | None], Number]] = {
            names.DIV: self._div,
            names.MOD: self._mod,
            names.WRAP: self._wrap,
            names.SATURATE: self._saturate,
            names.SATURATE_SIGNED: self._saturate_signed,
            names.SHIFT_LEFT: self._shift_left,
            names.SHIFT_RIGHT: self._shift_right,
            names.FOLD: self._fold,
            names.WORDS: self._words,
            "len": self._len,
            "min": self._least,
            "max": self._most,
            "bool": self._bool,
        }
        if function.id in known:
            found = known[function.id](node, demand)
        elif function.id in self._shared.constants:
            found = self._hash(node)
        else:
            raise UnsupportedError(self._text(node))

        return found if demand is None else cut(self._b, found, demand)

    def _bool(self, node: ast.Call, _demand: int | None) -> Number:
        return Number(self._b.zext(self._truth(node.args[0]), I32), 1)

    def _least(self, node: ast.Call, _demand: int | None) -> Number:
        return self._extreme(node, "<")

    def _most(self, node: ast.Call, _demand: int | None) -> Number:
        return self._extreme(node, ">")

    def _extreme(self, node: ast.Call, op: str) -> Number:
        left, right = (self._number(part) for part in node.args)
        return selected(self._b, compared(self._b, op, left, right), left, right)

    def _len(self, node: ast.Call, _demand: int | None) -> Number:
        if is_name(node.args[0], names.DATA):
            return Number(self._given["n"], 32)
        if is_name(node.args[0], names.FRAME):
            return self._frame_length()

        value = self._value(node.args[0])
        if not isinstance(value, Bytes):
            raise UnsupportedError(self._text(node))

        return Number(value.size, 32)

    def _frame_length(self) -> Number:
        raise UnsupportedError("len(frame)")

    def _quotient(self, node: ast.Call) -> tuple[Number, Number, Any, Any]:
        left, right = (self._number(part) for part in node.args)
        is_signed = left.is_signed or right.is_signed
        bits = max(left.bits, right.bits, 1)
        if is_signed:
            # The least number by -1 is one more than the greatest: a machine that has no room for
            # it ends the process.
            bits = max(left.signed_bits, right.signed_bits) + 1

        # Machines divide 64 bits, and LLVM more than 128; what is between is made wider.
        is_wide = bits > WORD_BITS
        type_ = container(max(bits, LIBRARY_BITS + 1) if is_wide else bits)
        one = as_type(self._b, left, type_)
        other = as_type(self._b, right, type_)
        is_zero = self._b.icmp_unsigned("==", other, ir.Constant(type_, 0))
        # By zero it is 0, as BMv2 has it; the machine must not see it.
        safe = self._b.select(is_zero, ir.Constant(type_, 1), other)
        if is_wide:
            divide = self._shared.helpers.wide_division(type_, is_signed)
            quotient = self._b.call(divide, [one, safe])
        else:
            quotient = (self._b.sdiv if is_signed else self._b.udiv)(one, safe)

        found = self._b.select(is_zero, ir.Constant(type_, 0), quotient)
        bits = left.signed_bits + 1 if is_signed else max(left.bits, 1)

        return left, right, Number(found, bits, is_signed), is_zero

    def _div(self, node: ast.Call, _demand: int | None) -> Number:
        found = self._quotient(node)[2]
        assert isinstance(found, Number)
        return found

    def _mod(self, node: ast.Call, _demand: int | None) -> Number:
        left, right, quotient, is_zero = self._quotient(node)
        product = added(self._b, quotient, right, "mul")
        rest = added(self._b, left, product, "sub")
        if not left.is_signed and not right.is_signed:
            rest = cut(self._b, rest, max(right.bits, 1))

        return selected(self._b, is_zero, constant(0), rest)

    def _wrap(self, node: ast.Call, _demand: int | None) -> Number:
        bits = constant_of(node.args[1])
        if bits is None:
            raise UnsupportedError(self._text(node))

        # Only the low bits count, so that nothing above them needs to be computed.
        return wrapped(self._b, self._number(node.args[0], max(bits, 1)), bits)

    def _saturate(self, node: ast.Call, _demand: int | None) -> Number:
        bits = constant_of(node.args[1])
        if bits is None:
            raise UnsupportedError(self._text(node))

        value = self._number(node.args[0])
        most = constant((1 << bits) - 1)
        value = selected(self._b, compared(self._b, "<", value, most), value, most)
        value = selected(self._b, compared(self._b, ">", value, constant(0)), value, constant(0))
        return cut(self._b, value, bits)

    def _saturate_signed(self, node: ast.Call, _demand: int | None) -> Number:
        bits = constant_of(node.args[1])
        if bits is None or bits < 1:
            raise UnsupportedError(self._text(node))

        value = self._number(node.args[0])
        least = constant(-(1 << bits - 1))
        most = constant((1 << bits - 1) - 1)
        value = selected(self._b, compared(self._b, "<", value, most), value, most)
        value = selected(self._b, compared(self._b, ">", value, least), value, least)
        return wrapped(self._b, value, bits)

    def _shift_left(self, node: ast.Call, demand: int | None) -> Number:
        value = self._number(node.args[0], demand)
        amount = self._number(node.args[1])
        most = (1 << amount.bits) - 1
        bits = demand if demand is not None else value.bits + most
        type_ = container(max(bits, value.bits))
        wide = as_type(self._b, value, type_)
        limit = constant(type_.width)
        is_far = self._b.or_(
            compared(self._b, ">=", amount, limit), compared(self._b, "<", amount, constant(0))
        )
        by = self._b.select(is_far, ir.Constant(type_, 0), as_type(self._b, amount, type_))
        shifted = self._b.select(is_far, ir.Constant(type_, 0), self._b.shl(wide, by))
        # Where only some bits matter, others are left above them, which are not cut yet.
        kept = type_.width if demand is not None else min(type_.width, max(bits, 1))
        return Number(shifted, kept, value.is_signed)

    def _shift_right(self, node: ast.Call, _demand: int | None) -> Number:
        value = self._number(node.args[0])
        amount = self._number(node.args[1])
        type_ = value.value.type
        last = constant(type_.width - 1)
        is_far = compared(self._b, ">", amount, last)
        is_negative = compared(self._b, "<", amount, constant(0))
        by = self._b.select(
            is_far,
            last.value if last.width == type_.width else ir.Constant(type_, type_.width - 1),
            as_type(self._b, amount, type_),
        )
        by = self._b.select(is_negative, ir.Constant(type_, 0), by)
        shift = self._b.ashr if value.is_signed else self._b.lshr
        shifted = shift(value.value, by)
        if not value.is_signed:
            # The last bit may be set: further than there are bits leaves nothing of it.
            shifted = self._b.select(is_far, ir.Constant(type_, 0), shifted)

        shifted = self._b.select(is_negative, ir.Constant(type_, 0), shifted)
        return Number(shifted, value.bits, value.is_signed)

    def _fold(self, node: ast.Call, _demand: int | None) -> Number:
        total = self._number(node.args[0])
        return Number(folded(self._b, self._sum_of_words(total)), 16)

    def _sum_of_words(self, total: Number) -> Any:
        """Return 64 bits that are as much modulo 2**16 - 1, and 0 only where the number is."""
        if total.bits <= 64:
            return as_type(self._b, total, I64)

        found: Any = word(0)
        for low in range(0, total.width, 32):
            part = self._b.trunc(self._b.lshr(total.value, ir.Constant(total.value.type, low)), I32)
            found = self._b.add(found, self._b.zext(part, I64))

        return found

    def _words(self, node: ast.Call, _demand: int | None) -> Number:
        data = node.args[0]
        if is_payload(data):
            # Beyond what is in memory a frame has zeros, which add nothing.
            start = as_type(self._b, self._number(data.slice.lower), I64)  # type: ignore[attr-defined]
            size = self._b.sub(self._given["avail"], start)
            is_empty = self._b.icmp_signed("<", size, word(0))
            size = self._b.select(is_empty, word(0), size)
            place = self._b.gep(self._given[names.DATA], [start])
        else:
            value = self._value(data)
            if not isinstance(value, Bytes):
                raise UnsupportedError(self._text(node))

            is_real = self._b.icmp_signed(">=", value.offset, ir.Constant(I32, 0))
            start = self._b.zext(self._b.select(is_real, value.offset, ir.Constant(I32, 0)), I64)
            real = self._b.zext(value.size, I64)
            size = self._b.select(is_real, real, word(0))
            place = self._b.gep(self._given[names.DATA], [start])

        total = self._b.call(self._shared.helpers.words(), [place, size])
        return Number(total, 48)

    def _hash(self, node: ast.Call) -> Number:
        """Return a hash of bytes that are put together for it."""
        assert isinstance(node.func, ast.Name)
        function = self._shared.constants[node.func.id]
        algorithm = self._shared.algorithms.get(id(function))
        if algorithm is None:
            raise UnsupportedError(self._text(node))

        source = node.args[0]
        if isinstance(source, ast.Call) and is_name(source.func, names.JOIN_BITS):
            room, size = self._joined_bits(source)
        elif isinstance(source, ast.Call):
            room, size = self._packed_apart(source)
        else:
            raise UnsupportedError(self._text(node))

        bits = hashes.ALGORITHMS[algorithm][1]
        value = self._b.call(self._shared.helpers.hash_of(algorithm), [room, size])
        return Number(value, bits)

    def _packed_apart(self, node: ast.Call) -> tuple[Any, Any]:
        assert isinstance(node.func, ast.Name)
        method = self._shared.constants.get(node.func.id)
        size = sum(size for _, size, _ in struct_parts(method))
        if not size:
            raise UnsupportedError(self._text(node))

        room = self._rooms.alloca(I8, size=size)
        self._pack(node, room, word(0))
        return room, word(size)

    def _joined_bits(self, node: ast.Call) -> tuple[Any, Any]:
        """Return the bytes of (present, value, width) parts, one bit after the other."""
        parts = [part.elts for part in node.args[0].elts]  # type: ignore[attr-defined]
        widths = [ast.literal_eval(width) for _, _, width in parts]
        if not all(widths):
            raise UnsupportedError("a hash of bytes of any length")

        total = sum(widths)
        if total > 2048:
            raise UnsupportedError(f"a hash of {total} bits")

        type_ = ir.IntType(64 * words_for(total))
        value: Any = ir.Constant(type_, 0)
        used: Any = ir.Constant(type_, 0)
        # From the left end down, so that what is present stays where it is.
        for (present, source, _), width in zip(parts, widths, strict=True):
            there = self._truth(present)
            number = as_type(self._b, cut(self._b, self._number(source), width), type_)
            after = self._b.add(used, ir.Constant(type_, width))
            by = self._b.sub(ir.Constant(type_, type_.width), after)
            by = self._b.select(there, by, ir.Constant(type_, 0))
            placed = self._b.or_(value, self._b.shl(number, by))
            value = self._b.select(there, placed, value)
            used = self._b.select(there, after, used)

        size = type_.width // 8
        room = self._rooms.alloca(I8, size=size)
        self._b.store(self._b.bswap(value), self._b.bitcast(room, type_.as_pointer()), align=1)
        bits = used if type_.width == 64 else self._b.trunc(used, I64)
        count = self._b.lshr(self._b.add(bits, word(7)), word(3))
        return room, count
