"""The functions that generated code calls: operators of any size, checksums, hashes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Any, ClassVar

from llvmlite import ir

from ofan_p4.softswitch.codegen import names, nodes, packet_nodes
from ofan_p4.softswitch.codegen.nodes import Expression
from ofan_p4.softswitch.codegen.variables import POSITION
from ofan_p4.softswitch.native.build import folded, load_word, word, words_at
from ofan_p4.softswitch.native.context import words_for
from ofan_p4.softswitch.native.division_code import LIBRARY_BITS
from ofan_p4.softswitch.native.frames import Frames
from ofan_p4.softswitch.native.missing_rules import no_rule
from ofan_p4.softswitch.native.scope import NumberRules
from ofan_p4.softswitch.native.shared import struct_parts
from ofan_p4.softswitch.native.values import (
    I8,
    I32,
    I64,
    WORD_BITS,
    Limit,
    Number,
    added,
    as_type,
    beyond,
    compared,
    constant,
    container,
    cut,
    selected,
    wrapped,
)


class Calls(Frames):
    """Translator of calls; `softswitch.base.arithmetic` and `hashes` define their meaning."""

    def _call(self, node: nodes.Call, demand: int | None) -> Number:
        return self.OPERATORS[node.function](self, node, demand)

    def _least(self, node: nodes.Call, _demand: int | None) -> Number:
        return self._extreme(node, "<")

    def _most(self, node: nodes.Call, _demand: int | None) -> Number:
        return self._extreme(node, ">")

    def _extreme(self, node: nodes.Call, op: str) -> Number:
        first, second = (self._number(part) for part in node.parts)
        return selected(self._b, compared(self._b, op, first, second), first, second)

    def _length(self, node: packet_nodes.Length, _demand: int | None) -> Number:
        if isinstance(node.of, packet_nodes.Data):
            return Number(self._arguments[names.SIZE], 32)

        return Number(self._bytes(node.of).size, 32)

    def _exact_quotient(self, node: nodes.Call) -> tuple[Number, Number, Number, Any]:
        """Return both sides, the quotient (0 where the divisor is 0), and whether it is 0."""
        numerator, denominator = (self._number(part) for part in node.parts)
        is_signed = numerator.is_signed or denominator.is_signed
        bits = max(numerator.bits, denominator.bits, 1)
        if is_signed:
            # The least number divided by -1 is one more than the greatest: where the machine has no
            # room for it, it ends the process.
            bits = max(numerator.signed_bits, denominator.signed_bits) + 1

        # Machines divide 64 bits, and LLVM more than 128; numbers between are made wider.
        is_wide = bits > WORD_BITS
        type_ = container(max(bits, LIBRARY_BITS + 1) if is_wide else bits)
        dividend = as_type(self._b, numerator, type_)
        divisor = as_type(self._b, denominator, type_)
        is_zero = self._b.icmp_unsigned("==", divisor, ir.Constant(type_, 0))
        # A division by zero gives 0, as in BMv2; the machine would end the process.
        safe = self._b.select(is_zero, ir.Constant(type_, 1), divisor)
        if is_wide:
            divide = self._shared.helpers.wide_division(type_, is_signed)
            quotient = self._b.call(divide, [dividend, safe])
        else:
            quotient = (self._b.sdiv if is_signed else self._b.udiv)(dividend, safe)

        chosen = self._b.select(is_zero, ir.Constant(type_, 0), quotient)
        bits = numerator.signed_bits + 1 if is_signed else max(numerator.bits, 1)

        return numerator, denominator, Number(chosen, bits, is_signed), is_zero

    def _div(self, node: nodes.Call, _demand: int | None) -> Number:
        return self._exact_quotient(node)[2]

    def _mod(self, node: nodes.Call, _demand: int | None) -> Number:
        numerator, denominator, quotient, is_zero = self._exact_quotient(node)
        product = added(self._b, quotient, denominator, "mul")
        # LLVM's remainder would need the same care for zero and signs: it follows from the
        # quotient.
        rest = added(self._b, numerator, product, "sub")
        if not numerator.is_signed and not denominator.is_signed:
            rest = cut(self._b, rest, max(denominator.bits, 1))

        return selected(self._b, is_zero, constant(0), rest)

    def _cut(self, node: nodes.Cut, _demand: int | None) -> Number:
        bits = node.to
        if node.function == names.WRAP:
            # Only the low bits count, so that nothing above them needs to be computed.
            return wrapped(self._b, self._number(node.value, max(bits, 1)), bits)

        if node.function == names.SATURATE:
            return cut(self._b, self._limited(node, 0, (1 << bits) - 1), bits)

        # Clamped to the range of int<bits>, which the low bits then hold with their sign.
        greatest = (1 << bits - 1) - 1
        return wrapped(self._b, self._limited(node, -greatest - 1, greatest), bits)

    def _limited(self, node: nodes.Cut, least: int, greatest: int) -> Number:
        value = self._number(node.value)
        for op, limit in (("<", constant(greatest)), (">", constant(least))):
            value = selected(self._b, compared(self._b, op, value, limit), value, limit)

        return value

    def _shift_left(self, node: nodes.Call, demand: int | None) -> Number:
        value = self._number(node.parts[0], demand)
        amount = self._number(node.parts[1])
        # Without a limit on the bits that matter, the container must hold the longest shift.
        longest_shift = (1 << amount.bits) - 1
        bits = demand if demand is not None else value.bits + longest_shift
        type_ = container(max(bits, value.bits))
        wide = as_type(self._b, value, type_)
        # LLVM leaves such shifts undefined: they shift by 0, and the result is replaced by 0.
        limit = constant(type_.width)
        is_far = self._b.or_(
            compared(self._b, ">=", amount, limit), compared(self._b, "<", amount, constant(0))
        )
        by = self._b.select(is_far, ir.Constant(type_, 0), as_type(self._b, amount, type_))
        shifted = self._b.select(is_far, ir.Constant(type_, 0), self._b.shl(wide, by))
        # Where only some bits matter, others are left above them, which are not cut yet.
        kept = type_.width if demand is not None else min(type_.width, max(bits, 1))
        return Number(shifted, kept, value.is_signed)

    def _shift_right(self, node: nodes.Call, _demand: int | None) -> Number:
        value = self._number(node.parts[0])
        amount = self._number(node.parts[1])
        type_ = value.value.type
        # A signed number leaves its sign, however far: the longest shift that LLVM defines does
        # that.
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

    def _fold(self, node: nodes.Call, _demand: int | None) -> Number:
        total = self._number(node.parts[0])
        return Number(folded(self._b, self._sum_of_words(total)), 16)

    def _sum_of_words(self, total: Number) -> Any:
        """Return 64 bits that are equal modulo 2**16 - 1, and 0 only where `total` is."""
        if total.bits <= 64:
            return as_type(self._b, total, I64)

        folded_total: Any = word(0)
        # 2**32 is 1 modulo 2**16 - 1, so that parts of 32 bits can be added up.
        for low in range(0, total.width, 32):
            part = self._b.trunc(self._b.lshr(total.value, ir.Constant(total.value.type, low)), I32)
            folded_total = self._b.add(folded_total, self._b.zext(part, I64))

        return folded_total

    def _words(self, node: nodes.Call, _demand: int | None) -> Number:
        total, _ = self._sum_of_bytes(node.parts[0])
        return Number(total, 48)

    def _sum_of_bytes(self, data: nodes.Expression) -> tuple[Any, Any]:
        """Return the sum of the 16-bit words of bytes, and how many bytes these are."""
        if isinstance(data, packet_nodes.Payload):
            # Beyond its bytes in memory a frame has zeros, which add nothing.
            start = as_type(self._b, self._number(POSITION), I64)
            size = self._b.sub(self._arguments["avail"], start)
            is_empty = self._b.icmp_signed("<", size, word(0))
            size = real = self._b.select(is_empty, word(0), size)
        else:
            value = self._bytes(data)
            # Zeros have a negative offset, and add nothing to the sum.
            is_real = self._b.icmp_signed(">=", value.offset, ir.Constant(I32, 0))
            start = self._b.zext(self._b.select(is_real, value.offset, ir.Constant(I32, 0)), I64)
            real = self._b.zext(value.size, I64)
            size = self._b.select(is_real, real, word(0))

        address = self._b.gep(self._arguments[names.DATA], [start])
        return self._b.call(self._shared.helpers.words(), [address, size]), real

    def _joined_sum(self, node: packet_nodes.JoinedBytes) -> Any:
        """Return the Internet checksum of parts of which some are bytes of any length.

        Behind an odd number of bytes, all words are turned by one byte: their sum is multiplied by
        2**8, which is right modulo 2**16 - 1.
        """
        total: Any = word(0)
        position: Any = word(0)
        for present, run in groupby(node.parts, key=lambda part: (part[0], part[2] == 0)):
            is_present = self._truth(present[0])
            for word_sum, size in self._run_sums(list(run), node):
                is_odd = self._b.and_(position, word(1))
                turned = self._b.shl(word_sum, self._b.shl(is_odd, word(3)))
                # 2**32 is 1 modulo 2**16 - 1: no sum of all parts exceeds 64 bits.
                low = self._b.and_(turned, word(0xFFFF_FFFF))
                part = self._b.add(low, self._b.lshr(turned, word(32)))
                total = self._b.add(total, self._b.select(is_present, part, word(0)))
                position = self._b.add(position, self._b.select(is_present, size, word(0)))

        return total

    def _run_sums(
        self, run: list[packet_nodes.JoinedPart], node: packet_nodes.JoinedBytes
    ) -> Iterator[tuple[Any, Any]]:
        """Yield the sum of words and the bytes of parts of one header, all fixed or none."""
        if run[0][2] == 0:
            yield from (self._sum_of_bytes(source) for _, source, _ in run)
            return

        bits = sum(width for _, _, width in run)
        # The next part would begin within a byte.
        if bits % 8:
            raise no_rule(node)

        total: Any = word(0)
        end = 0
        for _, source, width in run:
            end += width
            number = self._sum_of_words(cut(self._b, self._number(source), width))
            low = self._b.and_(number, word(0xFFFF_FFFF))
            folded_once = self._b.add(low, self._b.lshr(number, word(32)))
            total = self._b.add(total, self._b.shl(folded_once, word(-end % 16)))

        low = self._b.and_(total, word(0xFFFF_FFFF))
        yield self._b.add(low, self._b.lshr(total, word(32))), word(bits // 8)

    def _hash(self, node: packet_nodes.Hash, _demand: int | None) -> Number:
        """Return a hash of bytes that are put together for it."""
        match node.source:
            case packet_nodes.JoinedBytes() if node.algorithm == "csum16":
                return Number(folded(self._b, self._joined_sum(node.source)), 16)
            case source:
                buffer, size = self._hashed_bytes(source)

        value = self._b.call(self._shared.helpers.hash_of(node.algorithm), [buffer, size])
        return Number(value, node.bits)

    def _custom_hash(self, node: packet_nodes.CustomHash, _demand: int | None) -> Number:
        buffer, size = self._hashed_bytes(node.source)
        address = load_word(self._b, self._context, self._places.custom_crcs + node.number)
        function = self._shared.helpers.custom_crc(node.width)
        value = self._b.call(function, [buffer, size, words_at(self._b, address)])
        return Number(value, node.bits)

    def _hashed_bytes(self, source: Expression) -> tuple[Any, Any]:
        match source:
            case packet_nodes.JoinedBits():
                return self._joined_bits(source)
            case packet_nodes.Pack():
                return self._packed_apart(source)
            case _:
                raise no_rule(source)

    def _packed_apart(self, node: packet_nodes.Pack) -> tuple[Any, Any]:
        size = sum(size for _, size, _ in struct_parts(node.format))
        # Hashes read bytes: a struct is packed into memory of its own for them.
        buffer = self._rooms.alloca(I8, size=size)
        self._pack(node, buffer, word(0))
        return buffer, word(size)

    def _joined_bits(self, node: packet_nodes.JoinedBits) -> tuple[Any, Any]:
        """Return the bytes of (present, value, width) parts, one bit after the other."""
        total = sum(width for _, _, width in node.parts)
        if total > 2048:
            raise beyond(Limit.HASHES)

        type_ = ir.IntType(64 * words_for(total))
        value: Any = ir.Constant(type_, 0)
        used: Any = ir.Constant(type_, 0)
        # From the highest bit downwards: a header that is missing moves nothing that stands
        # already.
        for present, source, width in node.parts:
            is_present = self._truth(present)
            number = as_type(self._b, cut(self._b, self._number(source), width), type_)
            after = self._b.add(used, ir.Constant(type_, width))
            # How far from the lowest bit this part ends.
            by = self._b.sub(ir.Constant(type_, type_.width), after)
            by = self._b.select(is_present, by, ir.Constant(type_, 0))
            placed = self._b.or_(value, self._b.shl(number, by))
            value = self._b.select(is_present, placed, value)
            used = self._b.select(is_present, after, used)

        size = type_.width // 8
        buffer = self._rooms.alloca(I8, size=size)
        self._b.store(self._b.bswap(value), self._b.bitcast(buffer, type_.as_pointer()), align=1)
        bits = used if type_.width == 64 else self._b.trunc(used, I64)
        # Whole bytes: the last byte is filled up with zeros.
        count = self._b.lshr(self._b.add(bits, word(7)), word(3))
        return buffer, count

    OPERATORS: ClassVar[Mapping[str, Callable[[Any, nodes.Call, int | None], Number]]] = {
        names.DIV: _div,
        names.MOD: _mod,
        names.SHIFT_LEFT: _shift_left,
        names.SHIFT_RIGHT: _shift_right,
        names.FOLD: _fold,
        names.WORDS: _words,
        "min": _least,
        "max": _most,
    }
    NUMBERS: ClassVar[NumberRules] = {
        nodes.Call: _call,
        nodes.Cut: _cut,
        packet_nodes.Length: _length,
        packet_nodes.Hash: _hash,
        packet_nodes.CustomHash: _custom_hash,
    }
