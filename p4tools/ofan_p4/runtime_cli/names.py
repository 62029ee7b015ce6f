"""Objects of a program by name: by the full name, or by its end where that is unique."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TypeVar

from ofan_p4.softswitch.codegen.loading import load
from ofan_p4.softswitch.codegen.program import Action, Array, Profile, TableSpec

T = TypeVar("T")


class InputError(Exception):
    """A command that cannot be sent; the message is one line."""


class Names:
    """The objects of a BMv2 JSON by kind and name."""

    def __init__(self, source: bytes) -> None:
        program = load(source)
        self.actions = program.actions
        self.tables = {table.name: table for table in program.tables()}
        self.profiles = {profile.name: profile for profile in program.profiles()}
        self.counters = _named(program.counters)
        self.meters = _named(program.meters)
        self.registers = _named(program.registers)
        self.calculations = program.calculations
        # A direct counter or meter is addressed by its table.
        self.table_of_meter = {
            table.direct_meter: table.name for table in program.tables() if table.direct_meter
        }
        self.table_of_counter = _bindings(source)

    def table(self, name: str) -> TableSpec:
        """Return a table."""
        return find(self.tables, name, "table")

    def profile(self, name: str) -> Profile:
        """Return an action profile."""
        return find(self.profiles, name, "action profile")

    def action(self, table: TableSpec, name: str) -> Action:
        """Return an action of a table."""
        offered = {self.actions[number].name: self.actions[number] for number in table.actions}
        try:
            return find(offered, name, "action")
        except InputError:
            raise InputError(f"table {table.name} has no action {name}") from None

    def member_action(self, profile: Profile, name: str) -> Action:
        """Return an action of the tables that share a profile."""
        offered = {
            self.actions[number].name: self.actions[number]
            for table in self.tables.values()
            if table.profile == profile.name
            for number in table.actions
        }
        try:
            return find(offered, name, "action")
        except InputError:
            raise InputError(f"action profile {profile.name} has no action {name}") from None


def find(items: Mapping[str, T], name: str, noun: str) -> T:
    """Return the item of this name, or the only item with a name that ends in it."""
    if name in items:
        return items[name]

    matches = [item for full_name, item in items.items() if full_name.endswith(f".{name}")]
    if len(matches) != 1:
        reason = (
            f"the name {name} fits several {noun}s" if matches else f"no {noun} is called {name}"
        )
        raise InputError(reason)

    return matches[0]


def _named(arrays: Iterable[Array]) -> dict[str, Array]:
    return {array.name: array for array in arrays}


def _bindings(source: bytes) -> dict[str, str]:
    counters = json.loads(source).get("counter_arrays", ())
    return {item["name"]: item["binding"] for item in counters if item.get("is_direct")}
