"""Meters in LLVM IR: `ofan_p4.softswitch.state.meters` with 128-bit tokens."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ofan_p4.softswitch.base.units import PS_PER_SECOND
from ofan_p4.softswitch.native import context
from ofan_p4.softswitch.native.build import (
    load_word,
    word,
)
from ofan_p4.softswitch.native.made_once import MadeOnce
from ofan_p4.softswitch.native.values import I64, Builder
from ofan_p4.softswitch.state.meters import GREEN, RED, YELLOW

I128 = ir.IntType(128)


class MeterCode(MadeOnce):
    """The function that executes a meter."""

    def metered(self) -> ir.Function:
        """Return `i64 metered(meter, now, length)`: the colour, after counting (`meters`)."""
        return self._function("metered", I64, [I64.as_pointer(), I64, I64], self._metered)

    def _metered(self, builder: Builder, meter: Any, now: Any, length: Any) -> None:
        result = builder.alloca(I64)
        builder.store(word(GREEN), result)
        is_on = builder.icmp_unsigned("!=", load_word(builder, meter, context.METER_ON), word(0))
        with builder.if_then(is_on):
            by_bytes = load_word(builder, meter, context.METER_BYTES)
            counts_bytes = builder.icmp_unsigned("!=", by_bytes, word(0))
            units = builder.zext(builder.select(counts_bytes, length, word(1)), I128)
            # Tokens are counted in parts of 1/PS_PER_SECOND: a rate times picoseconds is tokens
            # without a division.
            cost = builder.mul(units, ir.Constant(I128, PS_PER_SECOND))
            committed = builder.gep(meter, [word(context.METER_COMMITTED)])
            peak = builder.gep(meter, [word(context.METER_PEAK)])
            fits = self._refilled(builder, committed, now, cost)
            fits_peak = self._refilled(builder, peak, now, cost)
            builder.store(word(RED), result)
            with builder.if_then(fits_peak):
                # RFC 2698: yellow takes tokens from the peak bucket only, green from both.
                builder.store(word(YELLOW), result)
                self._take(builder, peak, cost)
                with builder.if_then(fits):
                    builder.store(word(GREEN), result)
                    self._take(builder, committed, cost)

        # A meter that is off colours everything green, and counts it all the same.
        color = builder.load(result)
        first = builder.add(word(context.METER_COLORS), builder.mul(color, word(2)))
        for i, amount in enumerate((word(1), length)):
            counter = builder.gep(meter, [builder.add(first, word(i))])
            builder.store(builder.add(builder.load(counter), amount), counter)

        builder.ret(color)

    def _refilled(self, builder: Builder, bucket: Any, now: Any, asked: Any) -> Any:
        """Refill a bucket up to now; return whether it holds enough tokens."""
        last = load_word(builder, bucket, context.LAST)
        tokens = self._wide(builder, bucket, context.TOKENS)
        burst = _load128(builder, self._wide(builder, bucket, context.BURST))
        # The time is -1 before the first packet: the bucket is full then.
        is_known = builder.icmp_signed(">=", last, word(0))
        is_later = builder.icmp_signed(">", now, last)
        with builder.if_then(builder.and_(is_known, is_later)):
            passed = builder.zext(builder.sub(now, last), I128)
            rate = builder.zext(load_word(builder, bucket, context.RATE), I128)
            filled = builder.add(_load128(builder, tokens), builder.mul(passed, rate))
            # A bucket never holds more than its burst.
            is_full = builder.icmp_signed("<", burst, filled)
            builder.store(builder.select(is_full, burst, filled), tokens, align=8)

        builder.store(now, builder.gep(bucket, [word(context.LAST)]))
        return builder.icmp_signed(">=", _load128(builder, tokens), asked)

    def _take(self, builder: Builder, bucket: Any, asked: Any) -> None:
        tokens = self._wide(builder, bucket, context.TOKENS)
        builder.store(builder.sub(_load128(builder, tokens), asked), tokens, align=8)

    @staticmethod
    def _wide(builder: Builder, bucket: Any, word_index: int) -> Any:
        first = builder.gep(bucket, [word(word_index)])
        return builder.bitcast(first, I128.as_pointer())


def _load128(builder: Builder, word_index: Any) -> Any:
    # Words are aligned to 8 bytes, which machines do not take for granted of 128 bits.
    return builder.load(word_index, align=8)
