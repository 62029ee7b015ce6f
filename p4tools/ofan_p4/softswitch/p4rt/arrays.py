"""Counters, meters and registers: the indirect ones, and direct ones that are addressed alone.

BMv2 refuses registers through P4Runtime; this switch offers them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from p4.v1 import p4data_pb2, p4runtime_pb2
from p4.v1.p4runtime_pb2 import Update

from ofan_p4.softswitch.base.errors import Code, EntryError
from ofan_p4.softswitch.p4rt.bytestrings import decode, encode
from ofan_p4.softswitch.p4rt.contract import Add, Contract, known
from ofan_p4.softswitch.p4rt.meter_messages import (
    check_cleared,
    decode_config,
    encode_colors,
    encode_config,
    unit_is_bytes,
)
from ofan_p4.softswitch.p4rt.specs import ArrayInfo, TableInfo
from ofan_p4.softswitch.p4rt.table_entries import TableEntries
from ofan_p4.softswitch.state.meters import Meter
from ofan_p4.softswitch.state.tables import Entry


# Arrays and their cells exist with the program: there is nothing to insert or delete (9.3, 9.4).
def only_modify(kind: int, noun: str) -> None:
    """Raise INVALID_ARGUMENT for an update that is not MODIFY."""
    if kind != Update.MODIFY:
        raise EntryError(Code.INVALID_ARGUMENT, f"a {noun} can only be modified")


class Arrays:
    """Writes and reads counters, meters and registers of one pipeline."""

    def __init__(self, contract: Contract, entries: TableEntries) -> None:
        self._contract = contract
        self._entries = entries

    def write_counter(self, kind: int, entry: p4runtime_pb2.CounterEntry) -> None:
        """Set one cell, or all."""
        only_modify(kind, "counter")
        for index, info in _cells(self._contract.counters, entry.counter_id, entry, "counter"):
            if entry.HasField("data"):
                info.cells[index][:] = [entry.data.packet_count, entry.data.byte_count]

    def read_counter(self, entry: p4runtime_pb2.CounterEntry, add: Add) -> None:
        """Add the selected cells."""
        for index, info in _selected(self._contract.counters, entry.counter_id, entry, "counter"):
            entity = add()
            entity.counter_entry.counter_id = info.id
            _set_index(entity.counter_entry, index)
            packets, size = info.cells[index]
            entity.counter_entry.data.CopyFrom(
                p4runtime_pb2.CounterData(packet_count=packets, byte_count=size)
            )

    def write_meter(self, kind: int, entry: p4runtime_pb2.MeterEntry) -> None:
        """Configure one cell, or all; without a configuration they let everything pass as green."""
        only_modify(kind, "meter")
        spec = known(self._contract.meters, entry.meter_id, "meter").declaration.spec
        # Decoded before the first cell changes: an error leaves all of them as they were.
        rates = decode_config(entry.config, spec) if entry.HasField("config") else None

        if entry.HasField("counter_data"):
            check_cleared(entry.counter_data)

        for index, info in _cells(self._contract.meters, entry.meter_id, entry, "meter"):
            info.cells[index].configure(rates)
            if entry.HasField("counter_data"):
                info.cells[index].clear()

    def read_meter(self, entry: p4runtime_pb2.MeterEntry, add: Add) -> None:
        """Add the selected cells."""
        for index, info in _selected(self._contract.meters, entry.meter_id, entry, "meter"):
            entity = add()
            entity.meter_entry.meter_id = info.id
            _set_index(entity.meter_entry, index)
            _encode_meter(entity.meter_entry, info.cells[index], entry)

    def write_register(self, kind: int, entry: p4runtime_pb2.RegisterEntry) -> None:
        """Set one cell, or all."""
        only_modify(kind, "register")
        for index, info in _cells(self._contract.registers, entry.register_id, entry, "register"):
            # 9.7 allows any P4Data; registers of this switch hold bit<W>.
            if entry.data.WhichOneof("data") != "bitstring":
                raise EntryError(Code.INVALID_ARGUMENT, f"register {info.name!r} holds bit strings")

            info.cells[index] = decode(entry.data.bitstring, info.array.bits, info.name)

    def read_register(self, entry: p4runtime_pb2.RegisterEntry, add: Add) -> None:
        """Add the selected cells."""
        for index, info in _selected(
            self._contract.registers, entry.register_id, entry, "register"
        ):
            entity = add()
            entity.register_entry.register_id = info.id
            _set_index(entity.register_entry, index)
            entity.register_entry.data.CopyFrom(
                p4data_pb2.P4Data(bitstring=encode(info.cells[index]))
            )

    def write_direct_counter(self, kind: int, entry: p4runtime_pb2.DirectCounterEntry) -> None:
        """Set the counter of a table entry."""
        only_modify(kind, "direct counter")
        table, record = self._entries.find(entry.table_entry)
        _require(table.counter, table.name, "counter")

        if entry.HasField("data"):
            record.packets = entry.data.packet_count
            record.octets = entry.data.byte_count

    def read_direct_counter(self, entry: p4runtime_pb2.DirectCounterEntry, add: Add) -> None:
        """Add the counters of the selected table entries."""
        for table, record in self._direct(entry, "counter"):
            if table.counter is None:
                continue

            entity = add()
            self._entries.identify(table, record, entity.direct_counter_entry.table_entry)
            data = p4runtime_pb2.CounterData(
                packet_count=record[2].packets, byte_count=record[2].octets
            )
            entity.direct_counter_entry.data.CopyFrom(data)

    def write_direct_meter(self, kind: int, entry: p4runtime_pb2.DirectMeterEntry) -> None:
        """Configure the meter of a table entry."""
        only_modify(kind, "direct meter")
        table, record = self._entries.find(entry.table_entry)
        _require(table.meter, table.name, "meter")
        assert table.meter is not None
        rates = decode_config(entry.config, table.meter.spec) if entry.HasField("config") else None

        if entry.HasField("counter_data"):
            check_cleared(entry.counter_data)

        # A meter is made when it is first written to: most entries never have a meter.
        record.meter = record.meter or Meter(unit_is_bytes(table.meter.spec))
        record.meter.configure(rates)
        if entry.HasField("counter_data"):
            record.meter.clear()

    def read_direct_meter(self, entry: p4runtime_pb2.DirectMeterEntry, add: Add) -> None:
        """Add the meters of the selected table entries."""
        for table, record in self._direct(entry, "meter"):
            if table.meter is None:
                continue

            entity = add()
            self._entries.identify(table, record, entity.direct_meter_entry.table_entry)
            _encode_meter(
                entity.direct_meter_entry, record[2].meter or Meter(by_bytes=False), entry
            )

    def _direct(self, entry: Any, noun: str) -> Iterator[tuple[TableInfo, Entry]]:
        # A read of all tables passes over those without the resource; of one table it is an error.
        if entry.table_entry.table_id:
            table = self._contract.table(entry.table_entry.table_id)
            _require(getattr(table, noun), table.name, noun)

        for table, record in self._entries.records(entry.table_entry):
            yield table, record


def _encode_meter(message: Any, meter: Meter, request: Any) -> None:
    if meter.rates is not None:
        message.config.CopyFrom(encode_config(meter.rates))

    if request.HasField("counter_data"):
        message.counter_data.CopyFrom(encode_colors(meter))


def _set_index(message: Any, index: int) -> None:
    message.index.index = index
    # Index 0 is proto3's default and would otherwise look like no index.
    message.index.SetInParent()


def _cells(
    items: Mapping[int, ArrayInfo], number: int, entry: Any, noun: str
) -> Iterator[tuple[int, ArrayInfo]]:
    """Add the cells of one array: the cell at the index, or all without an index."""
    info = known(items, number, noun)
    if not entry.HasField("index"):
        yield from ((index, info) for index in range(len(info.cells)))
        return

    index = entry.index.index
    if index < 0:
        raise EntryError(Code.INVALID_ARGUMENT, f"{noun} {info.name!r}: index {index} is negative")

    if index >= len(info.cells):
        raise EntryError(
            Code.OUT_OF_RANGE, f"{noun} {info.name!r}: index {index} of {len(info.cells)} cells"
        )

    yield index, info


def _selected(
    items: Mapping[int, ArrayInfo], number: int, entry: Any, noun: str
) -> Iterator[tuple[int, ArrayInfo]]:
    for array_id in [number] if number else list(items):
        yield from _cells(items, array_id, entry, noun)


def _require(resource: object, table: str, noun: str) -> None:
    if resource is None:
        raise EntryError(Code.INVALID_ARGUMENT, f"table {table!r} has no direct {noun}")
