"""The runtime API's calls for counters, meters and registers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any

from ofan_p4.softswitch.daemon.thrift import messages as m
from ofan_p4.softswitch.daemon.thrift.messages import (
    CounterError,
    MeterError,
    Refusal,
    RegisterError,
    TableError,
)
from ofan_p4.softswitch.daemon.thrift.state import Cells, Runtime, TableState, cell, found
from ofan_p4.softswitch.daemon.thrift.table_calls import Entries
from ofan_p4.softswitch.daemon.thrift.wire import I32, I64
from ofan_p4.softswitch.state.meters import Meter, Rates
from ofan_p4.softswitch.state.tables import Record

MICROS = 10**6
I64_VALUES = 1 << 64


class DirectCalls(Entries, m.Part):
    """Counters and meters of entries."""

    codes = m.TableError

    def bm_mt_read_counter(self, table_name: str, entry_handle: I32) -> m.CounterValue:
        record = self.find(self._counted(table_name), entry_handle)[2]
        return m.CounterValue(bytes=record.octets, packets=record.packets)

    def bm_mt_reset_counters(self, table_name: str) -> None:
        table = self._counted(table_name).table
        for entry in (*table, table.default):
            entry[2].packets = entry[2].octets = 0

    def bm_mt_write_counter(
        self, table_name: str, entry_handle: I32, value: m.CounterValue
    ) -> None:
        record = self.find(self._counted(table_name), entry_handle)[2]
        record.packets, record.octets = value.packets, value.bytes

    def bm_mt_set_meter_rates(
        self, table_name: str, entry_handle: I32, rates: list[m.MeterRate]
    ) -> None:
        state = self.table(table_name)
        array = self._metered(state)
        record = self.find(state, entry_handle)[2]
        decoded = decode_rates(rates, TableError.INVALID_METER_OPERATION)
        # Made when it is first written to, like P4Runtime's.
        record.meter = record.meter or Meter(array.kind == "bytes")
        record.meter.configure(decoded)

    def bm_mt_get_meter_rates(self, table_name: str, entry_handle: I32) -> list[m.MeterRate]:
        state = self.table(table_name)
        self._metered(state)
        return encode_rates(self.find(state, entry_handle)[2].meter)

    def _counted(self, name: str) -> TableState:
        state = self.table(name)
        if not state.table.spec.with_counters:
            raise Refusal(TableError.COUNTERS_DISABLED)

        return state

    def _metered(self, state: TableState) -> Any:
        name = state.table.spec.direct_meter
        if name is None:
            raise Refusal(TableError.METERS_DISABLED)

        return self.runtime.loaded.direct_meters[name]


class CounterCalls(m.Part):
    """Indirect counters."""

    codes = m.CounterError

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def bm_counter_read(self, counter_name: str, index: I32) -> m.CounterValue:
        packets, octets = cell(self._cells(counter_name), index, CounterError.INVALID_INDEX)
        return m.CounterValue(bytes=int(octets), packets=int(packets))

    def bm_counter_reset_all(self, counter_name: str) -> None:
        for count in self._cells(counter_name):
            count[:] = [0, 0]

    def bm_counter_write(self, counter_name: str, index: I32, value: m.CounterValue) -> None:
        count = cell(self._cells(counter_name), index, CounterError.INVALID_INDEX)
        count[:] = [value.packets, value.bytes]

    def _cells(self, name: str) -> Sequence[Any]:
        return found(self._runtime.loaded.counters, name, CounterError.INVALID_COUNTER_NAME)[1]


class MeterCalls(m.Part):
    """Indirect meters."""

    codes = m.MeterError

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def bm_meter_array_set_rates(self, meter_array_name: str, rates: list[m.MeterRate]) -> None:
        decoded = decode_rates(rates)
        for record in self._direct(meter_array_name):
            record.meter = record.meter or Meter(self._by_bytes(meter_array_name))
            record.meter.configure(decoded)

        if meter_array_name not in self._runtime.loaded.direct_meters:
            for meter in self._cells(meter_array_name):
                meter.configure(decoded)

    def bm_meter_set_rates(
        self, meter_array_name: str, index: I32, rates: list[m.MeterRate]
    ) -> None:
        meter = cell(self._cells(meter_array_name), index, MeterError.INVALID_INDEX)
        meter.configure(decode_rates(rates))

    def bm_meter_get_rates(self, meter_array_name: str, index: I32) -> list[m.MeterRate]:
        return encode_rates(cell(self._cells(meter_array_name), index, MeterError.INVALID_INDEX))

    def _direct(self, name: str) -> Iterator[Record]:
        """Yield the entries of the table that a direct meter belongs to."""
        for state in self._runtime.loaded.tables.values():
            if state.table.spec.direct_meter == name:
                yield from (entry[2] for entry in (*state.table, state.table.default))

    def _by_bytes(self, name: str) -> bool:
        return self._runtime.loaded.direct_meters[name].kind == "bytes"

    def _cells(self, name: str) -> Sequence[Any]:
        return found(self._runtime.loaded.meters, name, MeterError.INVALID_METER_NAME)[1]


class RegisterCalls(m.Part):
    """Registers; values of up to 64 bits, which travel as signed numbers as in BMv2."""

    codes = m.RegisterError

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def bm_register_read(self, register_array_name: str, idx: I32) -> I64:
        _, cells = self._array(register_array_name)
        return _signed(int(cell(cells, idx, RegisterError.INVALID_INDEX)))

    def bm_register_read_all(self, register_array_name: str) -> list[I64]:
        return [_signed(int(value)) for value in self._array(register_array_name)[1]]

    def bm_register_write(self, register_array_name: str, index: I32, value: I64) -> None:
        self.bm_register_write_range(register_array_name, index, index + 1, value)

    def bm_register_write_range(
        self, register_array_name: str, start_index: I32, end_index: I32, value: I64
    ) -> None:
        array, cells = self._array(register_array_name)
        # As BMv2: the last index is not among them.
        if not 0 <= start_index <= end_index <= len(cells):
            raise Refusal(RegisterError.INVALID_INDEX)

        stored = value % min(1 << array.bits, I64_VALUES)
        if value not in (stored, stored - (1 << array.bits), _signed(stored)):
            raise Refusal(RegisterError.ERROR)

        for index in range(start_index, end_index):
            cells[index] = stored  # type: ignore[index]

    def bm_register_reset(self, register_array_name: str) -> None:
        _, cells = self._array(register_array_name)
        self.bm_register_write_range(register_array_name, 0, len(cells), 0)

    def _array(self, name: str) -> Cells:
        registers = self._runtime.loaded.registers
        return found(registers, name, RegisterError.INVALID_REGISTER_NAME)


def decode_rates(rates: Sequence[m.MeterRate], bad: IntEnum | None = None) -> Rates:
    """Return the rates of a meter; units per microsecond become units per second."""
    if len(rates) != 2:
        raise Refusal(bad or MeterError.BAD_RATES_LIST)

    per_second = [rate.units_per_micros * MICROS for rate in rates]
    if not all(map(math.isfinite, per_second)):
        raise Refusal(bad or MeterError.INVALID_INFO_RATE_VALUE)

    committed, peak = map(round, per_second)
    if not 0 <= committed <= peak:
        raise Refusal(bad or MeterError.INVALID_INFO_RATE_VALUE)
    if min(rate.burst_size for rate in rates) < 0:
        raise Refusal(bad or MeterError.INVALID_BURST_SIZE_VALUE)

    return Rates(committed, rates[0].burst_size, peak, rates[1].burst_size)


def encode_rates(meter: Meter | None) -> list[m.MeterRate]:
    """Return the rates of a meter, none where it lets everything pass."""
    if meter is None or meter.rates is None:
        return []

    rates = meter.rates
    return [
        m.MeterRate(rate / MICROS, burst)
        for rate, burst in ((rates.cir, rates.cburst), (rates.pir, rates.pburst))
    ]


def _signed(value: int) -> int:
    if value >= I64_VALUES:
        # Wider than the API's numbers: half of it would be another value.
        raise Refusal(RegisterError.ERROR)

    return value - I64_VALUES if value >> 63 else value
