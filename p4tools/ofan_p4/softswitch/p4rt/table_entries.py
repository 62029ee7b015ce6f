"""Table entries, with the direct counters and meters that belong to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from p4.v1.p4runtime_pb2 import TableEntry, Update

from ofan_p4.softswitch.base.errors import Code, EntryError
from ofan_p4.softswitch.p4rt.actions import (
    decode_action,
    decode_table_action,
    encode_table_action,
    one_shot_of,
)
from ofan_p4.softswitch.p4rt.contract import Add, Contract
from ofan_p4.softswitch.p4rt.matches import add_match, decode_match
from ofan_p4.softswitch.p4rt.meter_messages import (
    check_cleared,
    decode_config,
    encode_colors,
    encode_config,
    unit_is_bytes,
)
from ofan_p4.softswitch.p4rt.specs import TableInfo
from ofan_p4.softswitch.state.meters import Meter
from ofan_p4.softswitch.state.tables import Entry, Match, Record

Clock = Callable[[], int]


class TableEntries:
    """Writes and reads the entries of one pipeline's tables."""

    def __init__(self, contract: Contract, clock: Clock) -> None:
        self._contract = contract
        self._clock = clock

    def write(self, kind: int, entry: TableEntry) -> None:
        """Apply one update."""
        table = self._contract.table(entry.table_id)
        # 9.1: the switch defines which entries are const, not the controller.
        if entry.is_const:
            raise _invalid("is_const cannot be written")

        if entry.is_default_action:
            self._write_default(kind, table, entry)
        elif kind == Update.INSERT:
            self._insert(table, entry)
        elif kind == Update.MODIFY:
            self._modify(table, entry)
        else:
            self._delete(table, entry)

    def read(self, selection: TableEntry, add: Add) -> None:
        """Add the entries that a request selects."""
        if selection.table_id == 0:
            _check_wildcard(selection)
            for table in self._contract.tables.values():
                self._select(table, selection, add)
        else:
            self._select(self._contract.table(selection.table_id), selection, add)

    def find(self, selection: TableEntry) -> tuple[TableInfo, Record]:
        """Return the entry that a direct resource belongs to."""
        table = self._contract.table(selection.table_id)
        if selection.is_default_action:
            return table, table.runtime.default[2]

        return table, table.runtime.find(*self._key(table, selection))[2]

    def records(self, selection: TableEntry) -> Iterator[tuple[TableInfo, Entry]]:
        """Yield the entries of the direct resources that a request selects."""
        if selection.table_id == 0:
            for table in self._contract.tables.values():
                yield from ((table, entry) for entry in table.runtime)
        elif selection.match or selection.is_default_action:
            table, record = self.find(selection)
            # Default entries are not among `entries`, which `runtime` iterates over.
            entry = table.runtime.default if selection.is_default_action else None
            yield table, entry or table.runtime.entries[record.match, record.priority]
        else:
            table = self._contract.table(selection.table_id)
            yield from ((table, entry) for entry in table.runtime)

    def identify(self, table: TableInfo, entry: Entry, message: TableEntry) -> None:
        """Fill in the part of a message that identifies the entry."""
        message.table_id = table.id
        # By identity: an entry of the table may do the same.
        if entry is table.runtime.default:
            message.is_default_action = True
            return

        add_match(table.key, entry[2].match, message.match)
        message.priority = entry[2].priority

    def idle(self, now_ps: int) -> Iterator[TableEntry]:
        """Yield the entries not hit for as long as their timeout, and start their timers again."""
        for table in self._contract.tables.values():
            if not table.supports_timeout:
                continue

            for entry in table.runtime:
                record = entry[2]
                if 0 < record.idle_timeout_ns * 1000 <= now_ps - record.last_hit_ps:
                    # 16.4: the next notification comes a whole timeout later.
                    record.last_hit_ps = now_ps
                    message = TableEntry()
                    self.identify(table, entry, message)
                    message.idle_timeout_ns = record.idle_timeout_ns
                    message.metadata = record.metadata
                    message.controller_metadata = record.controller_metadata
                    yield message

    def next_expiry_ps(self) -> int | None:
        """Return the earliest time at which an entry becomes idle unless it is hit."""
        times = [
            entry[2].last_hit_ps + entry[2].idle_timeout_ns * 1000
            for table in self._contract.tables.values()
            if table.supports_timeout
            for entry in table.runtime
            if entry[2].idle_timeout_ns
        ]

        return min(times, default=None)

    def _insert(self, table: TableInfo, entry: TableEntry) -> None:
        if table.is_const or table.runtime.is_const:
            raise EntryError(Code.PERMISSION_DENIED, f"table {table.name!r} is const")
        # 9.1: a table without key has its default entry only.
        if not table.key:
            raise _invalid(f"table {table.name!r} has no key and so no entries")

        match, priority = self._key(table, entry)
        if (match, priority) in table.runtime.entries:
            raise EntryError(Code.ALREADY_EXISTS, f"table {table.name!r} already has this entry")

        self._check_resources(table, entry)
        # The one-shot's group is made here; where the table then has no room it must go again.
        choice = decode_table_action(table, entry.action)
        try:
            inserted = table.runtime.insert(match, priority, *choice)
        except EntryError:
            self._release(table, one_shot_of(choice))
            raise

        # The timeout runs from the insertion, not from the switch's start.
        inserted[2].last_hit_ps = self._clock()
        self._set_resources(table, entry, inserted[2])

    def _modify(self, table: TableInfo, entry: TableEntry) -> None:
        match, priority = self._key(table, entry)
        old = table.runtime.find(match, priority)
        if (table.is_const or old[2].is_const) and entry.HasField("action"):
            raise EntryError(Code.PERMISSION_DENIED, "the action of a const entry cannot change")

        self._check_resources(table, entry)
        if entry.HasField("action"):
            # The new group stands before the old one goes: no packet finds neither.
            before = one_shot_of((old[0], old[1]))
            choice = decode_table_action(table, entry.action, before)
            table.runtime.modify(match, priority, *choice)
            self._release(table, before)

        self._set_resources(table, entry, old[2])

    def _delete(self, table: TableInfo, entry: TableEntry) -> None:
        match, priority = self._key(table, entry)
        old = table.runtime.find(match, priority)
        if table.is_const or old[2].is_const:
            raise EntryError(Code.PERMISSION_DENIED, "a const entry cannot be deleted")

        table.runtime.delete(match, priority)
        self._release(table, one_shot_of((old[0], old[1])))

    def _release(self, table: TableInfo, group: int | None) -> None:
        if group is not None and table.profile is not None:
            table.profile.runtime.delete_hidden(group)

    def _write_default(self, kind: int, table: TableInfo, entry: TableEntry) -> None:
        if kind != Update.MODIFY:
            raise _invalid("the default entry can only be modified")
        if entry.match or entry.priority or entry.idle_timeout_ns:
            raise _invalid("the default entry has no match, no priority and no timeout")

        if table.has_const_default or table.runtime.spec.is_default_const:
            raise EntryError(
                Code.PERMISSION_DENIED, f"the default action of {table.name!r} is const"
            )

        self._check_resources(table, entry)
        # 9.1.3: a default entry without action is reset to that of the program.
        if not entry.HasField("action"):
            table.runtime.set_default(*table.runtime.initial_default[:2])
            entry = TableEntry(is_default_action=True)
        else:
            if entry.action.action.action_id in table.not_default:
                raise EntryError(Code.PERMISSION_DENIED, "the action cannot be a default action")

            table.runtime.set_default(*self._default_action(table, entry))

        self._set_resources(table, entry, table.runtime.default[2])

    def _default_action(self, table: TableInfo, entry: TableEntry) -> tuple[int, tuple[int, ...]]:
        if table.profile is not None:
            raise EntryError(
                Code.PERMISSION_DENIED,
                f"the default action of {table.name!r}, which uses a profile, is fixed",
            )

        if entry.action.WhichOneof("type") != "action":
            raise _invalid("a default entry needs an action")

        return decode_action(table, entry.action.action)

    def _key(self, table: TableInfo, entry: TableEntry) -> tuple[Match, int]:
        # 9.1.1: a priority is needed exactly where a field is ternary, range or optional.
        if table.needs_priority != (entry.priority > 0):
            expected = "a priority above 0" if table.needs_priority else "no priority"
            raise _invalid(f"table {table.name!r} wants {expected}, found {entry.priority}")

        return decode_match(table.key, entry.match, f"table {table.name!r}"), entry.priority

    def _check_resources(self, table: TableInfo, entry: TableEntry) -> None:
        if entry.HasField("time_since_last_hit"):
            raise _invalid("time_since_last_hit cannot be written")
        if entry.idle_timeout_ns and not table.supports_timeout:
            raise _invalid(f"table {table.name!r} does not support idle timeouts")
        if entry.idle_timeout_ns < 0:
            raise _invalid(f"an idle timeout of {entry.idle_timeout_ns} ns")
        if entry.HasField("counter_data") and table.counter is None:
            raise _invalid(f"table {table.name!r} has no direct counter")

        if table.meter is None and (
            entry.HasField("meter_config") or entry.HasField("meter_counter_data")
        ):
            raise _invalid(f"table {table.name!r} has no direct meter")

        if entry.HasField("meter_config") and table.meter is not None:
            decode_config(entry.meter_config, table.meter.spec)

        if entry.HasField("meter_counter_data"):
            check_cleared(entry.meter_counter_data)

    def _set_resources(self, table: TableInfo, entry: TableEntry, record: Record) -> None:
        record.metadata = entry.metadata
        record.controller_metadata = entry.controller_metadata
        record.idle_timeout_ns = entry.idle_timeout_ns

        if entry.HasField("counter_data"):
            # 9.1.6: fields outside the message stay, but for the meter: left out, it is reset.
            record.packets = entry.counter_data.packet_count
            record.octets = entry.counter_data.byte_count

        if table.meter is None:
            return

        if record.meter is None:
            record.meter = Meter(unit_is_bytes(table.meter.spec))

        rates = (
            decode_config(entry.meter_config, table.meter.spec)
            if entry.HasField("meter_config")
            else None
        )

        record.meter.configure(rates)
        if entry.HasField("meter_counter_data"):
            record.meter.clear()

    def _select(self, table: TableInfo, selection: TableEntry, add: Add) -> None:
        _check_selection(table, selection)
        if selection.is_default_action:
            self._encode(table, table.runtime.default, selection, add().table_entry)
            return

        key = self._selected_key(table, selection)
        for entry in table.runtime:
            if self._is_selected(table, entry, selection, key):
                self._encode(table, entry, selection, add().table_entry)

    def _selected_key(self, table: TableInfo, selection: TableEntry) -> Match | None:
        if not selection.match:
            return None

        return decode_match(table.key, selection.match, f"table {table.name!r}")

    def _is_selected(
        self, table: TableInfo, entry: Entry, selection: TableEntry, key: Match | None
    ) -> bool:
        record = entry[2]
        if key is not None and record.match != key:
            return False
        if selection.priority not in (0, record.priority):
            return False
        if selection.metadata not in (b"", record.metadata):
            return False
        if selection.controller_metadata not in (0, record.controller_metadata):
            return False

        # 9.1.6: proto3's default value means "any".
        action = selection.action.action.action_id
        return not action or table.numbers.get(action) == entry[0]

    def _encode(
        self, table: TableInfo, entry: Entry, selection: TableEntry, message: TableEntry
    ) -> None:
        record = entry[2]
        self.identify(table, entry, message)
        encode_table_action(table, (entry[0], entry[1]), message)
        message.is_const = record.is_const
        message.metadata = record.metadata
        message.controller_metadata = record.controller_metadata
        message.idle_timeout_ns = record.idle_timeout_ns

        if (
            selection.HasField("time_since_last_hit")
            and table.supports_timeout
            and not selection.is_default_action
        ):
            # 9.1.8: filled in only on request.
            message.time_since_last_hit.elapsed_ns = (self._clock() - record.last_hit_ps) // 1000

        self._encode_resources(table, record, selection, message)

    def _encode_resources(
        self, table: TableInfo, record: Record, selection: TableEntry, message: TableEntry
    ) -> None:
        if selection.HasField("counter_data") and table.counter is not None:
            message.counter_data.packet_count = record.packets
            message.counter_data.byte_count = record.octets
            # A counter of 0 packets is an answer too.
            message.counter_data.SetInParent()

        if table.meter is None:
            return

        meter = record.meter or Meter(by_bytes=False)
        if selection.HasField("meter_config") and meter.rates is not None:
            message.meter_config.CopyFrom(encode_config(meter.rates))

        if selection.HasField("meter_counter_data"):
            message.meter_counter_data.CopyFrom(encode_colors(meter))


def _check_wildcard(selection: TableEntry) -> None:
    """Raise INVALID_ARGUMENT for a read of all tables with a filter: none can be used with it."""
    filters = (
        selection.match,
        selection.priority,
        selection.HasField("action"),
        selection.metadata,
        selection.controller_metadata,
    )

    if any(filters):
        raise _invalid("a read of all tables (table_id 0) takes no other filter")


def _check_selection(table: TableInfo, selection: TableEntry) -> None:
    """Raise INVALID_ARGUMENT for a selection that a read of one table cannot have."""
    if selection.is_default_action and (
        selection.match or selection.priority or selection.idle_timeout_ns
    ):
        raise _invalid("the default entry has no match, no priority and no timeout")

    asks_for_time = selection.table_id and selection.HasField("time_since_last_hit")
    if asks_for_time and (selection.is_default_action or not table.supports_timeout):
        raise _invalid(f"table {table.name!r} does not tell when an entry was last hit")


def _invalid(message: str) -> EntryError:
    return EntryError(Code.INVALID_ARGUMENT, message)
