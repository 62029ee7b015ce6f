"""Meters between P4Runtime messages and the switch's own: rates, colours, units."""

from __future__ import annotations

from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2

from ofan_p4.softswitch.base.errors import Code, EntryError
from ofan_p4.softswitch.state.meters import Meter, Rates


def decode_config(config: p4runtime_pb2.MeterConfig, spec: p4info_pb2.MeterSpec) -> Rates:
    """Return the rates of a meter: two rates and three colours, or one rate and two."""
    # 9.4: a single rate is given twice, so that the same two buckets serve.
    if spec.type == p4info_pb2.MeterSpec.SINGLE_RATE_TWO_COLOR and (config.pir, config.pburst) != (
        config.cir,
        config.cburst,
    ):
        raise EntryError(
            Code.INVALID_ARGUMENT,
            "a single-rate meter has its committed rate and burst as peak rate and burst",
        )

    # eburst belongs to single-rate three-colour meters (RFC 2697), which this switch refuses.
    if min(config.cir, config.cburst, config.pir, config.pburst) < 0 or config.eburst:
        raise EntryError(
            Code.INVALID_ARGUMENT, "a two-rate meter has rates and bursts from 0 up and no eburst"
        )

    # RFC 2698: the peak rate is at least the committed rate.
    if config.cir > config.pir:
        raise EntryError(
            Code.INVALID_ARGUMENT, f"committed rate {config.cir} above peak rate {config.pir}"
        )

    return Rates(config.cir, config.cburst, config.pir, config.pburst)


def encode_config(rates: Rates) -> p4runtime_pb2.MeterConfig:
    """Return the message form of a meter's rates."""
    return p4runtime_pb2.MeterConfig(
        cir=rates.cir, cburst=rates.cburst, pir=rates.pir, pburst=rates.pburst
    )


def encode_colors(meter: Meter) -> p4runtime_pb2.MeterCounterData:
    """Return the packets and bytes that a meter has seen per colour."""
    green, yellow, red = (
        p4runtime_pb2.CounterData(packet_count=packets, byte_count=size)
        for packets, size in meter.colors
    )

    return p4runtime_pb2.MeterCounterData(green=green, yellow=yellow, red=red)


def check_cleared(data: p4runtime_pb2.MeterCounterData) -> None:
    """Raise INVALID_ARGUMENT unless all counts of a write are 0: they can only be reset."""
    if any(color.packet_count or color.byte_count for color in (data.green, data.yellow, data.red)):
        raise EntryError(Code.INVALID_ARGUMENT, "the counters of a meter can only be set to 0")


def unit_is_bytes(spec: p4info_pb2.MeterSpec) -> bool:
    """Return whether a meter counts bytes, not packets."""
    return bool(spec.unit == p4info_pb2.MeterSpec.BYTES)
