"""The hashes of v1model in LLVM IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from ofan_p4.softswitch.base.hashes import crc_table
from ofan_p4.softswitch.native import context
from ofan_p4.softswitch.native.build import counted, folded, load_word, word
from ofan_p4.softswitch.native.made_once import MadeOnce
from ofan_p4.softswitch.native.values import I32, I64, POINTER, Builder


class HashCode(MadeOnce):
    """Functions from bytes to a number (`ofan_p4.softswitch.base.hashes`)."""

    def table_of(self, name: str, values: Sequence[int], type_: ir.IntType) -> Any:
        """Return the address of a constant table."""
        if name not in self._module.globals:
            kind = ir.ArrayType(type_, len(values))
            table = ir.GlobalVariable(self._module, kind, name)
            table.linkage = "internal"
            table.global_constant = True
            table.initializer = ir.Constant(kind, list(values))

        return self._module.globals[name]

    def hash_of(self, algorithm: str) -> ir.Function:
        """Return `i64 hash(bytes, size)` of an algorithm of v1model."""
        function = self._function(
            f"hash_{algorithm}",
            I64,
            [POINTER, I64],
            {
                "crc32": self._crc32,
                "crc16": self._crc16,
                "crcCCITT": self._crc_ccitt,
                "csum16": self._csum16,
                "xor16": self._xor16,
                "identity": self._identity,
            }[algorithm],
        )
        # LLVM must not see how the bytes were put together: where it swaps the bytes of wide
        # numbers, it forgot to cut out a byte before it was an index of a table, and the process
        # ended.
        function.attributes.add("noinline")
        return function

    def _crc(
        self, builder: Builder, data: Any, size: Any, start: int, type_: ir.IntType, step: Any
    ) -> Any:
        crc = builder.alloca(type_)
        builder.store(ir.Constant(type_, start), crc)
        with counted(builder, size) as (index, _):
            byte = builder.load(builder.gep(data, [index]))
            builder.store(step(builder.load(crc), builder.zext(byte, type_)), crc)

        return builder.load(crc)

    def _lookup(self, builder: Builder, table: Any, index: Any) -> Any:
        address = builder.gep(table, [word(0), builder.zext(index, I64)])
        return builder.load(address)

    def _crc32(self, builder: Builder, data: Any, size: Any) -> None:
        table = self.table_of("crc32_table", crc_table(0xEDB88320), I32)
        crc = self._reflected(builder, data, size, table=table, start=0xFFFFFFFF)
        builder.ret(builder.zext(builder.not_(crc), I64))

    def _crc16(self, builder: Builder, data: Any, size: Any) -> None:
        table = self.table_of("crc16_table", crc_table(0xA001), I32)
        crc = self._reflected(builder, data, size, table=table, start=0)
        builder.ret(builder.zext(crc, I64))

    def _reflected(self, builder: Builder, data: Any, size: Any, table: Any, start: int) -> Any:
        """Return the same as `hashes.reflected_crc`."""

        def step(crc: Any, byte: Any) -> Any:
            # A byte at a time by a table of 256 entries, the lowest bit first (reflected).
            index = builder.and_(builder.xor(crc, byte), ir.Constant(I32, 0xFF))
            return builder.xor(
                builder.lshr(crc, ir.Constant(I32, 8)), self._lookup(builder, table, index)
            )

        return self._crc(builder, data, size, start, I32, step)

    def custom_crc(self, bits: int) -> ir.Function:
        """Return `i64 crc(bytes, size, words)`, a CRC of so many bits with parameters (`crcs`)."""

        def body(builder: Builder, data: Any, size: Any, parameters: Any) -> None:
            builder.ret(self._with_parameters(builder, data, size, parameters, bits))

        function = self._function(f"custom_crc{bits}", I64, [POINTER, I64, I64.as_pointer()], body)
        # As with `hash_of`.
        function.attributes.add("noinline")
        return function

    @staticmethod
    def _with_parameters(builder: Builder, data: Any, size: Any, parameters: Any, bits: int) -> Any:
        def is_set(bit: int) -> Any:
            return builder.icmp_unsigned("!=", load_word(builder, parameters, bit), word(0))

        data_is_reflected = is_set(context.CRC_REFLECTS_DATA)
        crc = builder.alloca(I64)
        builder.store(load_word(builder, parameters, context.CRC_START), crc)
        with counted(builder, size) as (index, _):
            came = builder.load(builder.gep(data, [index]))
            byte = builder.select(data_is_reflected, came, builder.bitreverse(came))
            before = builder.load(crc)
            entry = builder.xor(builder.and_(before, word(0xFF)), builder.zext(byte, I64))
            added = load_word(builder, parameters, builder.add(entry, word(context.CRC_TABLE)))
            builder.store(builder.xor(builder.lshr(before, word(8)), added), crc)

        # The remainder has its lowest bit first, as the result of a reflected CRC has.
        remainder = builder.load(crc)
        turned = builder.lshr(builder.bitreverse(remainder), word(64 - bits))
        result = builder.select(is_set(context.CRC_REFLECTS_REMAINDER), remainder, turned)
        return builder.xor(result, load_word(builder, parameters, context.CRC_FINAL_XOR))

    def _crc_ccitt(self, builder: Builder, data: Any, size: Any) -> None:
        values = [_forward(i, 0x1021) for i in range(256)]
        table = self.table_of("ccitt_table", values, I32)

        def step(crc: Any, byte: Any) -> Any:
            # The same with the highest bit first.
            index = builder.and_(
                builder.xor(builder.lshr(crc, ir.Constant(I32, 8)), byte), ir.Constant(I32, 0xFF)
            )
            # 16 bits in a container of 32: bits shifted out above must go.
            shifted = builder.and_(builder.shl(crc, ir.Constant(I32, 8)), ir.Constant(I32, 0xFFFF))
            return builder.xor(shifted, self._lookup(builder, table, index))

        builder.ret(builder.zext(self._crc(builder, data, size, 0xFFFF, I32, step), I64))

    def _csum16(self, builder: Builder, data: Any, size: Any) -> None:
        total = builder.call(self.words(), [data, size])
        builder.ret(folded(builder, total))

    def words(self) -> ir.Function:
        """Return `i64 words(bytes, size)`: the sum of the bytes' 16-bit words."""
        return self._function("words", I64, [POINTER, I64], self._words)

    def _words(self, builder: Builder, data: Any, size: Any) -> None:
        self._combined(builder, data, size, builder.add)

    def _xor16(self, builder: Builder, data: Any, size: Any) -> None:
        self._combined(builder, data, size, builder.xor)

    @staticmethod
    def _combined(builder: Builder, data: Any, size: Any, combine: Callable[..., Any]) -> None:
        """Return the bytes' 16-bit words, combined."""
        total = builder.alloca(I64)
        builder.store(word(0), total)
        with counted(builder, size) as (index, _):
            byte = builder.zext(builder.load(builder.gep(data, [index])), I64)
            # The first of two bytes is the more significant; a last one alone is, too.
            is_second = builder.and_(index, word(1))
            shift = builder.sub(word(8), builder.shl(is_second, word(3)))
            builder.store(combine(builder.load(total), builder.shl(byte, shift)), total)

        builder.ret(builder.load(total))

    def _identity(self, builder: Builder, data: Any, size: Any) -> None:
        total = builder.alloca(I64)
        builder.store(word(0), total)
        # The first eight bytes as one number, which is all that 64 bits hold.
        count = builder.select(builder.icmp_unsigned("<", size, word(8)), size, word(8))
        with counted(builder, count) as (index, _):
            byte = builder.zext(builder.load(builder.gep(data, [index])), I64)
            builder.store(builder.or_(builder.shl(builder.load(total), word(8)), byte), total)

        builder.ret(builder.load(total))


def _forward(byte: int, polynomial: int) -> int:
    value = byte << 8
    for _ in range(8):
        # A bit that leaves at the top subtracts the polynomial.
        value = (value << 1 ^ (polynomial if value & 0x8000 else 0)) & 0xFFFF

    return value
