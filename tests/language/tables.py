"""Tables: their entries, and which of these a packet takes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from tests.language import tree as n
from tests.language.externs import ExternEvaluator
from tests.language.operators import binary, converted
from tests.language.scopes import Scope
from tests.language.values import (
    Num,
    copied,
    equal,
    from_bits,
    pattern,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """`keys` are (value, 0) or (value, prefix length), (value, mask), (low, high) by match kind."""

    keys: tuple[tuple[int, int], ...]
    priority: int
    action: str
    args: tuple[int, ...]


@dataclass(slots=True)
class Applied:
    hit: bool
    action: str


class TableEvaluator(ExternEvaluator):
    """Runs code that applies tables; `looked_up` are the keys that each of them has seen."""

    def __init__(
        self,
        program: n.Program,
        entries: dict[str, list[Entry]],
        key_widths: dict[str, list[int]],
    ) -> None:
        super().__init__(program)
        self.entries = entries
        self.key_widths = key_widths
        self.looked_up: dict[str, list[tuple[int, ...]]] = defaultdict(list)

    def look_up(self, table: n.Table, scope: Scope) -> Applied:
        """Run the action of the entry that matches, or the default action."""
        values = [copied(self.value(key, scope)) for key, _ in table.keys]
        bits = tuple(key_bits(value) for value in values)
        self.looked_up[table.name].append(bits)
        installed_entry = self.best(table, bits)
        if installed_entry is not None:
            self.act(installed_entry.action, (), installed_entry.args, scope)
            return Applied(True, installed_entry.action)

        for entry in table.entries:
            if all(
                self.matches(written, value, scope)
                for written, value in zip(entry.keys, values, strict=True)
            ):
                self.act(entry.action.name, entry.action.args, (), scope)
                return Applied(True, entry.action.name)

        self.act(table.default.name, table.default.args, (), scope)

        return Applied(False, table.default.name)

    def best(self, table: n.Table, bits: tuple[int, ...]) -> Entry | None:
        """Return the entry of the control plane that matches: the longest prefix, or priority."""
        kinds = [kind for _, kind in table.keys]
        matching = [
            entry
            for entry in self.entries.get(table.name, ())
            if all(map(is_match, kinds, bits, entry.keys, self.key_widths[table.name]))
        ]
        has_priority = any(kind in ("ternary", "range", "optional") for kind in kinds)
        if not has_priority and "lpm" in kinds:
            lpm_index = kinds.index("lpm")
            return max(matching, key=lambda entry: entry.keys[lpm_index][1], default=None)

        return max(matching, key=lambda entry: entry.priority, default=None)

    def matches(self, written: n.Expression, value: Any, scope: Scope) -> bool:
        """Say whether a value is in the set that a case or an entry names."""
        match written:
            case n.Anything():
                return True
            case n.Masked(inner, mask):
                bits = binary("&", self.value(inner, scope), self.value(mask, scope))
                return equal(binary("&", value, self.value(mask, scope)), bits)
            case n.Between(low, high):
                return bool(
                    binary(">=", value, self.value(low, scope))
                    and binary("<=", value, self.value(high, scope))
                )

        expected = self.value(written, scope)
        if isinstance(expected, Num) and isinstance(value, Num):
            return bool(binary("==", converted(expected, typed(value)), value))
        return equal(expected, value)

    def act(
        self, name: str, args: tuple[n.Expression, ...], data: tuple[int, ...], scope: Scope
    ) -> None:
        """Run an action with arguments of the program and data of the control plane."""
        if name == "NoAction":
            return
        action = scope.find(name)
        assert isinstance(action, n.Function)
        action_data = [
            from_bits(param.type, value)
            for param, value in zip(action.params[len(args) :], data, strict=True)
        ]
        self.invoke(action, args, scope, tuple(action_data))


def typed(value: Num) -> n.Bits:
    assert value.width is not None

    return n.Bits(value.width, value.signed)


def key_bits(value: Any) -> int:
    """Return a key as tables see it: errors and enums by their number are not judged."""
    match value:
        case bool():
            return int(value)
        case Num():
            return pattern(value)

    raise ValueError(f"{value} is no key")


def is_match(kind: str, value: int, key: tuple[int, int], width: int) -> bool:
    """Say whether a key matches a value of so many bits."""
    first, second = key
    match kind:
        case "exact":
            return value == first
        case "lpm":
            return value >> (width - second) == first >> (width - second)
        case "range":
            return first <= value <= second

    return value & second == first & second
