"""The methods of BMv2's services that this switch has: names, arguments and results as there."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import IntEnum
from functools import cache
from typing import Any, ClassVar, NamedTuple, Protocol, get_type_hints

from ofan_p4.softswitch.daemon.thrift import messages as m
from ofan_p4.softswitch.daemon.thrift.wire import I32, I64, Members, members_of

Data = list[bytes]
Key = list[m.MatchParam]


class Part(Protocol):
    """Some methods of a service.

    `codes` is the enumeration of their exception's code; with a context the first argument is its
    number.
    """

    codes: ClassVar[type[IntEnum] | None] = None
    has_context: ClassVar[bool] = True


class Tables(Part, Protocol):
    """Match tables."""

    codes: ClassVar[type[IntEnum] | None] = m.TableError

    def bm_mt_get_num_entries(self, table_name: str) -> I64: ...

    def bm_mt_clear_entries(self, table_name: str, reset_default_entry: bool) -> None: ...

    def bm_mt_add_entry(
        self,
        table_name: str,
        match_key: Key,
        action_name: str,
        action_data: Data,
        options: m.AddEntryOptions,
    ) -> I32: ...

    def bm_mt_set_default_action(
        self, table_name: str, action_name: str, action_data: Data
    ) -> None: ...

    def bm_mt_reset_default_entry(self, table_name: str) -> None: ...

    def bm_mt_delete_entry(self, table_name: str, entry_handle: I32) -> None: ...

    def bm_mt_modify_entry(
        self, table_name: str, entry_handle: I32, action_name: str, action_data: Data
    ) -> None: ...

    def bm_mt_set_entry_ttl(self, table_name: str, entry_handle: I32, timeout_ms: I32) -> None: ...

    def bm_mt_get_entries(self, table_name: str) -> list[m.TableEntry]: ...

    def bm_mt_get_entry(self, table_name: str, entry_handle: I32) -> m.TableEntry: ...

    def bm_mt_get_default_entry(self, table_name: str) -> m.ActionEntry: ...

    def bm_mt_get_entry_from_key(
        self, table_name: str, match_key: Key, options: m.AddEntryOptions
    ) -> m.TableEntry: ...


class Indirect(Part, Protocol):
    """Tables with entries that name a member or a group of an action profile."""

    codes: ClassVar[type[IntEnum] | None] = m.TableError

    def bm_mt_indirect_add_entry(
        self, table_name: str, match_key: Key, mbr_handle: I32, options: m.AddEntryOptions
    ) -> I32: ...

    def bm_mt_indirect_modify_entry(
        self, table_name: str, entry_handle: I32, mbr_handle: I32
    ) -> None: ...

    def bm_mt_indirect_delete_entry(self, table_name: str, entry_handle: I32) -> None: ...

    def bm_mt_indirect_set_entry_ttl(
        self, table_name: str, entry_handle: I32, timeout_ms: I32
    ) -> None: ...

    def bm_mt_indirect_ws_add_entry(
        self, table_name: str, match_key: Key, grp_handle: I32, options: m.AddEntryOptions
    ) -> I32: ...

    def bm_mt_indirect_ws_modify_entry(
        self, table_name: str, entry_handle: I32, grp_handle: I32
    ) -> None: ...


class Direct(Part, Protocol):
    """Counters and meters of entries."""

    codes: ClassVar[type[IntEnum] | None] = m.TableError

    def bm_mt_read_counter(self, table_name: str, entry_handle: I32) -> m.CounterValue: ...

    def bm_mt_reset_counters(self, table_name: str) -> None: ...

    def bm_mt_write_counter(
        self, table_name: str, entry_handle: I32, value: m.CounterValue
    ) -> None: ...

    def bm_mt_set_meter_rates(
        self, table_name: str, entry_handle: I32, rates: list[m.MeterRate]
    ) -> None: ...

    def bm_mt_get_meter_rates(self, table_name: str, entry_handle: I32) -> list[m.MeterRate]: ...


class Profiles(Part, Protocol):
    """Action profiles and selectors."""

    codes: ClassVar[type[IntEnum] | None] = m.TableError

    def bm_mt_act_prof_add_member(
        self, act_prof_name: str, action_name: str, action_data: Data
    ) -> I32: ...

    def bm_mt_act_prof_delete_member(self, act_prof_name: str, mbr_handle: I32) -> None: ...

    def bm_mt_act_prof_modify_member(
        self, act_prof_name: str, mbr_handle: I32, action_name: str, action_data: Data
    ) -> None: ...

    def bm_mt_act_prof_create_group(self, act_prof_name: str) -> I32: ...

    def bm_mt_act_prof_delete_group(self, act_prof_name: str, grp_handle: I32) -> None: ...

    def bm_mt_act_prof_add_member_to_group(
        self, act_prof_name: str, mbr_handle: I32, grp_handle: I32
    ) -> None: ...

    def bm_mt_act_prof_remove_member_from_group(
        self, act_prof_name: str, mbr_handle: I32, grp_handle: I32
    ) -> None: ...

    def bm_mt_act_prof_get_members(self, act_prof_name: str) -> list[m.ProfileMember]: ...

    def bm_mt_act_prof_get_member(self, act_prof_name: str, mbr_handle: I32) -> m.ProfileMember: ...

    def bm_mt_act_prof_get_groups(self, act_prof_name: str) -> list[m.ProfileGroup]: ...

    def bm_mt_act_prof_get_group(self, act_prof_name: str, grp_handle: I32) -> m.ProfileGroup: ...


class Counters(Part, Protocol):
    """Indirect counters."""

    codes: ClassVar[type[IntEnum] | None] = m.CounterError

    def bm_counter_read(self, counter_name: str, index: I32) -> m.CounterValue: ...

    def bm_counter_reset_all(self, counter_name: str) -> None: ...

    def bm_counter_write(self, counter_name: str, index: I32, value: m.CounterValue) -> None: ...


class Meters(Part, Protocol):
    """Indirect meters."""

    codes: ClassVar[type[IntEnum] | None] = m.MeterError

    def bm_meter_array_set_rates(self, meter_array_name: str, rates: list[m.MeterRate]) -> None: ...

    def bm_meter_set_rates(
        self, meter_array_name: str, index: I32, rates: list[m.MeterRate]
    ) -> None: ...

    def bm_meter_get_rates(self, meter_array_name: str, index: I32) -> list[m.MeterRate]: ...


class Registers(Part, Protocol):
    """Registers."""

    codes: ClassVar[type[IntEnum] | None] = m.RegisterError

    def bm_register_read(self, register_array_name: str, idx: I32) -> I64: ...

    def bm_register_read_all(self, register_array_name: str) -> list[I64]: ...

    def bm_register_write(self, register_array_name: str, index: I32, value: I64) -> None: ...

    def bm_register_write_range(
        self, register_array_name: str, start_index: I32, end_index: I32, value: I64
    ) -> None: ...

    def bm_register_reset(self, register_array_name: str) -> None: ...


class Crcs(Part, Protocol):
    """Calculations by a CRC with parameters."""

    codes: ClassVar[type[IntEnum] | None] = m.CrcError

    def bm_set_crc16_custom_parameters(
        self, calc_name: str, crc16_config: m.Crc16Config
    ) -> None: ...

    def bm_set_crc32_custom_parameters(
        self, calc_name: str, crc32_config: m.Crc32Config
    ) -> None: ...


class Management(Part, Protocol):
    """The switch as a whole."""

    has_context: ClassVar[bool] = False

    def bm_dev_mgr_show_ports(self) -> list[m.PortInfo]: ...

    def bm_mgmt_get_info(self) -> m.SwitchInfo: ...

    def bm_reset_state(self) -> None: ...

    def bm_get_config(self) -> str: ...

    def bm_get_config_md5(self) -> bytes: ...


class Multicast(Part, Protocol):
    """Multicast groups of nodes, each a replication id with its ports."""

    codes: ClassVar[type[IntEnum] | None] = m.MulticastError

    def bm_mc_mgrp_create(self, mgrp: I32) -> I32: ...

    def bm_mc_mgrp_destroy(self, mgrp_handle: I32) -> None: ...

    def bm_mc_node_create(self, rid: I32, port_map: str, lag_map: str | None) -> I32: ...

    def bm_mc_node_associate(self, mgrp_handle: I32, l1_handle: I32) -> None: ...

    def bm_mc_node_dissociate(self, mgrp_handle: I32, l1_handle: I32) -> None: ...

    def bm_mc_node_destroy(self, l1_handle: I32) -> None: ...

    def bm_mc_node_update(self, l1_handle: I32, port_map: str, lag_map: str | None) -> None: ...

    def bm_mc_get_entries(self) -> str: ...


class Mirroring(Part, Protocol):
    """Clone sessions."""

    codes: ClassVar[type[IntEnum] | None] = m.MirroringError
    has_context: ClassVar[bool] = False

    def mirroring_session_add(self, mirror_id: I32, config: m.MirroringSession) -> None: ...

    def mirroring_session_delete(self, mirror_id: I32) -> None: ...

    def mirroring_session_get(self, mirror_id: I32) -> m.MirroringSession: ...


class Queues(Part, Protocol):
    """Queues and clocks."""

    has_context: ClassVar[bool] = False

    def set_egress_priority_queue_depth(
        self, port_num: I32, priority: I32, depth_pkts: I32
    ) -> I32: ...

    def set_egress_queue_depth(self, port_num: I32, depth_pkts: I32) -> I32: ...

    def set_all_egress_queue_depths(self, depth_pkts: I32) -> I32: ...

    def set_egress_priority_queue_rate(
        self, port_num: I32, priority: I32, rate_pps: I64
    ) -> I32: ...

    def set_egress_queue_rate(self, port_num: I32, rate_pps: I64) -> I32: ...

    def set_all_egress_queue_rates(self, rate_pps: I64) -> I32: ...

    def get_time_elapsed_us(self) -> I64: ...

    def get_time_since_epoch_us(self) -> I64: ...


SERVICES: dict[str, tuple[type[Part], ...]] = {
    "standard": (
        Tables,
        Indirect,
        Direct,
        Profiles,
        Counters,
        Meters,
        Registers,
        Crcs,
        Management,
    ),
    "simple_pre_lag": (Multicast,),
    "simple_switch": (Mirroring, Queues),
}


class Method(NamedTuple):
    """One method: its arguments, its answer, and its service."""

    name: str
    arguments: Members
    answer: Members
    part: type[Part]


@cache
def methods() -> dict[str, Method]:
    """Return the methods by `service:name`."""
    return {
        f"{service}:{name}": _method(name, function, part)
        for service, parts in SERVICES.items()
        for part in parts
        for name, function in _functions(part)
    }


def _functions(part: type[Part]) -> Iterator[tuple[str, Any]]:
    for name, function in vars(part).items():
        if inspect.isfunction(function) and not name.startswith("_"):
            yield name, function


def _method(name: str, function: Any, part: type[Part]) -> Method:
    hints = get_type_hints(function, include_extras=True)
    result = hints.pop("return")
    taken = {"cxt_id": I32, **hints} if part.has_context else hints
    # Field 0 is the result; a method always throws a struct with one code.
    answered: dict[int, Any] = {}
    if result is not type(None):
        answered.update(members_of({"success": result | None}, first=0))
    if part.codes is not None:
        answered.update(members_of({"ouch": m.Ouch | None}))

    return Method(name, members_of(taken), answered, part)
