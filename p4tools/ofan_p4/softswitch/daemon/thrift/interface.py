"""The methods of BMv2's services that this switch has: names, arguments and results as there."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any, NamedTuple, get_type_hints

from ofan_p4.softswitch.daemon.thrift.array_calls import (
    CounterCalls,
    DirectCalls,
    MeterCalls,
    RegisterCalls,
)
from ofan_p4.softswitch.daemon.thrift.crc_calls import CrcCalls
from ofan_p4.softswitch.daemon.thrift.messages import Ouch, Part
from ofan_p4.softswitch.daemon.thrift.profile_calls import ProfileCalls
from ofan_p4.softswitch.daemon.thrift.replication_calls import MirroringCalls, MulticastCalls
from ofan_p4.softswitch.daemon.thrift.switch_calls import ManagementCalls, QueueCalls
from ofan_p4.softswitch.daemon.thrift.table_calls import IndirectCalls, TableCalls
from ofan_p4.softswitch.daemon.thrift.wire import I32, Members, members_of

SERVICES: dict[str, tuple[type[Part], ...]] = {
    "standard": (
        TableCalls,
        IndirectCalls,
        DirectCalls,
        ProfileCalls,
        CounterCalls,
        MeterCalls,
        RegisterCalls,
        CrcCalls,
        ManagementCalls,
    ),
    "simple_pre_lag": (MulticastCalls,),
    "simple_switch": (MirroringCalls, QueueCalls),
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
        for name, function in vars(part).items()
        if inspect.isfunction(function) and not name.startswith("_")
    }


def _method(name: str, function: Any, part: type[Part]) -> Method:
    hints = get_type_hints(function, include_extras=True)
    result = hints.pop("return")
    taken = {"cxt_id": I32, **hints} if part.has_context else hints
    # Field 0 is the result; a method always throws a struct with one code.
    answered: dict[int, Any] = {}
    if result is not type(None):
        answered.update(members_of({"success": result | None}, first=0))
    if part.codes is not None:
        answered.update(members_of({"ouch": Ouch | None}))

    return Method(name, members_of(taken), answered, part)
