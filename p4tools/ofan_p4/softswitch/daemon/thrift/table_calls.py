"""The runtime API's calls for match tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ofan_p4.softswitch.base.errors import Code, EntryError
from ofan_p4.softswitch.base.units import PS_PER_US
from ofan_p4.softswitch.codegen.program import NO_ACTION, USE_GROUP, USE_MEMBER
from ofan_p4.softswitch.daemon.thrift import messages as m
from ofan_p4.softswitch.daemon.thrift.keys import (
    decode_data,
    decode_match,
    encode_data,
    encode_match,
    flipped,
)
from ofan_p4.softswitch.daemon.thrift.messages import EntryType, Refusal, TableError
from ofan_p4.softswitch.daemon.thrift.state import Runtime, TableState
from ofan_p4.softswitch.daemon.thrift.wire import I32, I64
from ofan_p4.softswitch.state.profiles import Choice
from ofan_p4.softswitch.state.tables import Entry, Match, needs_priority

CODES = {
    Code.ALREADY_EXISTS: TableError.DUPLICATE_ENTRY,
    Code.RESOURCE_EXHAUSTED: TableError.TABLE_FULL,
}
PS_PER_MS = 1000 * PS_PER_US
NS_PER_MS = 10**6


@contextmanager
def refused() -> Iterator[None]:
    """Turn the switch's refusals into BMv2's codes."""
    try:
        yield
    except EntryError as error:
        raise Refusal(CODES.get(error.code, TableError.ERROR)) from None


class Entries:
    """Calls that direct and indirect tables share."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def table(self, name: str, is_indirect: bool | None = None) -> TableState:
        """Return a table, which has an action profile or has not, where that matters."""
        state = self.runtime.loaded.table(name)
        if is_indirect is not None and is_indirect != (state.table.spec.profile is not None):
            raise Refusal(TableError.WRONG_TABLE_TYPE)

        return state

    def find(self, state: TableState, handle: int) -> Entry:
        """Return the entry of a handle."""
        return state.table.entries[state.handles().key(handle)]

    def key(
        self, state: TableState, params: list[m.MatchParam], options: m.AddEntryOptions
    ) -> tuple[Match, int]:
        """Return the key of an entry as the table stores it."""
        spec = state.table.spec
        if not spec.key:
            raise Refusal(TableError.NO_TABLE_KEY)

        # If no two entries can match the same packet equally well, BMv2 ignores the priority.
        priority = flipped(options.priority or 0) if needs_priority(spec) else 0
        return decode_match(spec.key, params), priority

    def add(
        self,
        state: TableState,
        params: list[m.MatchParam],
        options: m.AddEntryOptions,
        choice: Choice,
    ) -> int:
        """Add an entry; its handle."""
        self.check_mutable(state)
        key = self.key(state, params, options)
        with refused():
            entry = state.table.insert(*key, *choice)

        entry[2].last_hit_ps = self.runtime.switch.clock()
        return state.added(key)

    def modify(self, state: TableState, handle: int, choice: Choice) -> None:
        """Replace the action of an entry."""
        self.check_mutable(state)
        old = self.find(state, handle)
        state.table.modify(*state.handles().key(handle), *choice)
        self._release(state, old)

    def delete(self, state: TableState, handle: int) -> None:
        """Remove an entry."""
        self.check_mutable(state)
        key = state.handles().key(handle)
        self._release(state, state.table.delete(*key))
        state.removed(key)

    def set_ttl(self, state: TableState, handle: int, timeout_ms: int) -> None:
        """Set the idle timeout of an entry."""
        if not state.table.spec.supports_timeout:
            raise Refusal(TableError.AGEING_DISABLED)
        if timeout_ms < 0:
            raise Refusal(TableError.ERROR)

        record = self.find(state, handle)[2]
        record.idle_timeout_ns = timeout_ms * NS_PER_MS

    def check_mutable(self, state: TableState) -> None:
        """Refuse changes of a table with const entries."""
        if state.table.is_const:
            raise Refusal(TableError.IMMUTABLE_TABLE_ENTRIES)

    def _release(self, state: TableState, entry: Entry) -> None:
        # The members of a P4Runtime one-shot go with their entry.
        profile = state.table.spec.profile
        if profile is not None and entry[0] == USE_GROUP and entry[1][0] < 0:
            self.runtime.loaded.profile(profile).profile.delete_hidden(entry[1][0])


class TableCalls(Entries, m.Part):
    """Match tables."""

    codes = m.TableError

    def bm_mt_get_num_entries(self, table_name: str) -> I64:
        return len(self.table(table_name).table.entries)

    def bm_mt_clear_entries(self, table_name: str, reset_default_entry: bool) -> None:
        state = self.table(table_name)
        for handle, _ in list(state.handles()):
            self.delete(state, handle)

        if reset_default_entry:
            self.bm_mt_reset_default_entry(table_name)

    def bm_mt_add_entry(
        self,
        table_name: str,
        match_key: m.Key,
        action_name: str,
        action_data: m.Data,
        options: m.AddEntryOptions,
    ) -> I32:
        state = self.table(table_name, is_indirect=False)
        action = state.action(action_name)
        choice = (action.id, decode_data(action, action_data))
        return self.add(state, match_key, options, choice)

    def bm_mt_set_default_action(
        self, table_name: str, action_name: str, action_data: m.Data
    ) -> None:
        state = self.table(table_name, is_indirect=False)
        if state.table.spec.is_default_const:
            raise Refusal(TableError.DEFAULT_ACTION_IS_CONST)

        action = state.action(action_name)
        state.table.set_default(action.id, decode_data(action, action_data))

    def bm_mt_reset_default_entry(self, table_name: str) -> None:
        table = self.table(table_name).table
        table.set_default(*table.initial_default[:2])

    def bm_mt_delete_entry(self, table_name: str, entry_handle: I32) -> None:
        self.delete(self.table(table_name, is_indirect=False), entry_handle)

    def bm_mt_modify_entry(
        self, table_name: str, entry_handle: I32, action_name: str, action_data: m.Data
    ) -> None:
        state = self.table(table_name, is_indirect=False)
        action = state.action(action_name)
        self.modify(state, entry_handle, (action.id, decode_data(action, action_data)))

    def bm_mt_set_entry_ttl(self, table_name: str, entry_handle: I32, timeout_ms: I32) -> None:
        self.set_ttl(self.table(table_name, is_indirect=False), entry_handle, timeout_ms)

    def bm_mt_get_entries(self, table_name: str) -> list[m.TableEntry]:
        state = self.table(table_name)
        return [self._entry(state, key) for _, key in state.handles()]

    def bm_mt_get_entry(self, table_name: str, entry_handle: I32) -> m.TableEntry:
        state = self.table(table_name)
        return self._entry(state, state.handles().key(entry_handle))

    def bm_mt_get_default_entry(self, table_name: str) -> m.ActionEntry:
        return self._action(self.table(table_name).table.default)

    def bm_mt_get_entry_from_key(
        self, table_name: str, match_key: m.Key, options: m.AddEntryOptions
    ) -> m.TableEntry:
        state = self.table(table_name)
        key = self.key(state, match_key, options)
        if key not in state.handles():
            raise Refusal(TableError.BAD_MATCH_KEY)

        return self._entry(state, key)

    def _entry(self, state: TableState, key: tuple[Match, int]) -> m.TableEntry:
        entry = state.table.entries[key]
        match, priority = key
        spec = state.table.spec
        # -1 is BMv2's sign for no priority.
        shown = flipped(priority) if needs_priority(spec) else -1
        return m.TableEntry(
            encode_match(spec.key, match),
            m.AddEntryOptions(shown),
            state.handles().handle(key),
            self._action(entry),
            self._life(entry) if spec.supports_timeout else None,
        )

    def _life(self, entry: Entry) -> m.EntryLife:
        idle_ps = self.runtime.switch.clock() - entry[2].last_hit_ps
        return m.EntryLife(entry[2].idle_timeout_ns // NS_PER_MS, idle_ps // PS_PER_MS)

    def _action(self, entry: Entry) -> m.ActionEntry:
        number, values, _ = entry
        match number:
            case _ if number == NO_ACTION:
                return m.ActionEntry(EntryType.NONE)
            case _ if number == USE_MEMBER:
                return m.ActionEntry(EntryType.MBR_HANDLE, mbr_handle=values[0])
            case _ if number == USE_GROUP:
                return m.ActionEntry(EntryType.GRP_HANDLE, grp_handle=values[0])

        action = self.runtime.loaded.actions[number]
        return m.ActionEntry(EntryType.ACTION_DATA, action.name, encode_data(action, values))


class IndirectCalls(Entries, m.Part):
    """Tables with entries that name a member or a group of an action profile."""

    codes = m.TableError

    def bm_mt_indirect_add_entry(
        self, table_name: str, match_key: m.Key, mbr_handle: I32, options: m.AddEntryOptions
    ) -> I32:
        state = self.table(table_name, is_indirect=True)
        return self.add(state, match_key, options, self._member(state, mbr_handle))

    def bm_mt_indirect_modify_entry(
        self, table_name: str, entry_handle: I32, mbr_handle: I32
    ) -> None:
        state = self.table(table_name, is_indirect=True)
        self.modify(state, entry_handle, self._member(state, mbr_handle))

    def bm_mt_indirect_delete_entry(self, table_name: str, entry_handle: I32) -> None:
        self.delete(self.table(table_name, is_indirect=True), entry_handle)

    def bm_mt_indirect_set_entry_ttl(
        self, table_name: str, entry_handle: I32, timeout_ms: I32
    ) -> None:
        self.set_ttl(self.table(table_name, is_indirect=True), entry_handle, timeout_ms)

    def bm_mt_indirect_ws_add_entry(
        self, table_name: str, match_key: m.Key, grp_handle: I32, options: m.AddEntryOptions
    ) -> I32:
        state = self.table(table_name, is_indirect=True)
        return self.add(state, match_key, options, self._group(state, grp_handle))

    def bm_mt_indirect_ws_modify_entry(
        self, table_name: str, entry_handle: I32, grp_handle: I32
    ) -> None:
        state = self.table(table_name, is_indirect=True)
        self.modify(state, entry_handle, self._group(state, grp_handle))

    def _member(self, state: TableState, handle: int) -> Choice:
        profile = self.runtime.loaded.profile(state.table.spec.profile or "").profile
        if handle < 0 or handle not in profile.members:
            raise Refusal(TableError.INVALID_MBR_HANDLE)

        return USE_MEMBER, (handle,)

    def _group(self, state: TableState, handle: int) -> Choice:
        profile = self.runtime.loaded.profile(state.table.spec.profile or "")
        if not profile.has_selector:
            raise Refusal(TableError.WRONG_TABLE_TYPE)
        if handle < 0 or handle not in profile.profile.groups:
            raise Refusal(TableError.INVALID_GRP_HANDLE)

        # As BMv2: an entry cannot lead to nothing.
        if not profile.profile.groups[handle].members:
            raise Refusal(TableError.EMPTY_GRP)

        return USE_GROUP, (handle,)
