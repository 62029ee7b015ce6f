"""A switch on the bench: it runs a script's commands and keeps the frames that leave."""

from __future__ import annotations

import json
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ofan_p4.softswitch.base.errors import EntryError
from ofan_p4.softswitch.base.units import PS_PER_SECOND
from ofan_p4.softswitch.codegen.program import USE_GROUP
from ofan_p4.softswitch.control.pipeline import DROP_PORT, Pipeline
from ofan_p4.softswitch.control.switch import Pending, Switch
from ofan_p4.softswitch.control.trace import Walk
from ofan_p4.softswitch.state.tables import Match, Table, needs_priority
from ofan_p4.stf import arrays, multicast
from ofan_p4.stf.arrays import Arrays
from ofan_p4.stf.matching import MatchError, match_of
from ofan_p4.stf.multicast import Multicast
from ofan_p4.stf.names import find_named, key_name
from ofan_p4.stf.script import (
    Add,
    Call,
    CheckCounter,
    CheckFailed,
    Command,
    Direct,
    Expect,
    Packet,
    Remove,
    ScriptError,
    SetDefault,
    numbers,
)

MOST_ROUNDS = 10_000
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Installed:
    """Where an entry is, for its removal and its counter."""

    table: Table
    match: Match
    priority: int


class Bench:
    """A switch with a program.

    All ports exist, `random` is the lowest value, and time passes by `wait` only.
    """

    def __init__(self, program: Mapping[str, Any], walk: Walk | None = None) -> None:
        # Time passes by `wait` only, so that meters and time stamps are the same in every run.
        self.now_ps = 0
        self.switch = Switch(
            0, lambda: self.now_ps, lambda low, _high: low, range(DROP_PORT), walk=walk
        )
        # Through `self`, since the lists are made below.
        self.switch.on_log = lambda text: self.logged.append(text)
        self.switch.on_digest = lambda number, values: self.digests.append((number, values))
        self.switch.load(json.dumps(program).encode())
        assert self.switch.pipeline is not None
        self.pipeline: Pipeline = self.switch.pipeline
        self.sent: dict[int, list[bytes]] = defaultdict(list)
        self.expected: list[Expect] = []
        self.logged: list[str] = []
        self.digests: list[tuple[int, tuple[int, ...]]] = []
        self._entries: dict[str, Installed] = {}
        self._arrays = Arrays(self.pipeline)
        self._multicast = Multicast(self.switch)

    def run(self, command: Command) -> None:
        """Do one command.

        Raises ScriptError where it cannot be done, CheckFailed where it finds something else.
        """
        try:
            self._run(command)
        except (EntryError, MatchError) as error:
            raise ScriptError(command.line, str(error)) from None

    def _run(self, command: Command) -> None:
        match command:
            case Packet():
                self.receive(command.port, command.frame)
            case Expect():
                self.expected.append(command)
            case Add():
                self._add(command)
            case Remove():
                self._remove(command)
            case SetDefault():
                table = self.table(command.line, command.table)
                table.set_default(*self.choice(command.line, table, command.call))
            case CheckCounter():
                self._check_counter(command)
            case Direct():
                self._direct(command)

    def receive(self, port: int, frame: bytes) -> None:
        """Put a frame through the switch, with all its copies."""
        waiting: list[Pending] = self.switch.ingress(port, frame)
        # Recirculated and resubmitted packets come back as waiting packets, in some programs for
        # ever.
        for _ in range(MOST_ROUNDS):
            if not waiting:
                return

            for out in self.switch.egress(waiting.pop(0)):
                self.sent[out.port].append(out.frame)

            waiting += self.switch.take_requeued()

        raise CheckFailed(f"a packet of port {port} goes round for ever")

    # Tables

    def table(self, line: int, name: str) -> Table:
        """Return the table that a script names."""
        named_table: Table = find_named(
            line,
            "table",
            name,
            (
                (table.spec.name, table)
                for table in self.pipeline.tables
                if not table.spec.is_hidden
            ),
        )

        return named_table

    def choice(self, line: int, table: Table, call: Call) -> tuple[int, tuple[int, ...]]:
        """Return the number and the arguments of an action of the table."""
        offered = [self.pipeline.program.actions[number] for number in table.spec.actions]
        action = find_named(
            line,
            f"action of {table.spec.name}",
            call.action,
            ((item.name, item) for item in offered),
        )

        arguments = dict(call.arguments)
        unknown = set(arguments) - set(action.parameter_names)
        missing = set(action.parameter_names) - set(arguments)

        if unknown or missing:
            parameters = ", ".join(action.parameter_names) or "no arguments"
            raise ScriptError(
                line, f"{action.name} takes {parameters}, found {', '.join(arguments) or 'none'}"
            )

        values = numbers(line, [arguments[name] for name in action.parameter_names])
        for name, value, bits in zip(
            action.parameter_names, values, action.parameter_bits, strict=True
        ):
            if value >> bits:
                raise ScriptError(
                    line, f"{action.name}: {name} = {value} does not fit in {bits} bits"
                )

        return action.id, tuple(values)

    def match(self, line: int, table: Table, keys: Iterable[tuple[str, str]]) -> Match:
        """Return the matches of a script in the order of the table's keys."""
        names = [key.name for key in table.spec.key]
        matches: dict[str, str] = {}
        for name, text in keys:
            matches[key_name(line, names, name)] = text

        return tuple(match_of(key, matches.get(key.name)) for key in table.spec.key)

    def _place(self, command: Add | Remove) -> Installed:
        table = self.table(command.line, str(command.table))
        priority = (command.priority or 0) if needs_priority(table.spec) else 0
        return Installed(table, self.match(command.line, table, command.keys), priority)

    def _add(self, command: Add) -> None:
        entry = self._place(command)
        table = entry.table
        choices = [self.choice(command.line, table, call) for call in command.calls]

        if table.is_const:
            raise ScriptError(command.line, f"the entries of {table.spec.name} are const")

        action, data = choices[0]
        # A group of its own for every entry, also where it has one action only.
        if table.spec.profile is not None:
            profiles = [item.name for item in self.pipeline.program.profiles()]
            profile = self.pipeline.profiles[profiles.index(table.spec.profile)]
            action = USE_GROUP
            data = (profile.add_hidden([(choice, 1, None) for choice in choices]),)
        elif len(choices) > 1:
            raise ScriptError(
                command.line, f"{table.spec.name} has no action selector: one action only"
            )

        table.insert(entry.match, entry.priority, action, data)
        if command.id is not None:
            # Scripts write `= id` and later `$id`.
            self._entries[command.id.lstrip("$")] = entry

    def _remove(self, command: Remove) -> None:
        if command.table is None:
            for table in self.pipeline.tables:
                # A copy, since the table changes meanwhile.
                for match, priority in [] if table.is_const else list(table.entries):
                    table.delete(match, priority)

            return

        # `remove NAME`: an entry of that name, if it exists, else the whole key of a table.
        entry = None if command.keys else self._entries.pop(command.table.lstrip("$"), None)
        entry = entry or self._place(command)
        entry.table.delete(entry.match, entry.priority)

    # Counters

    def _check_counter(self, command: CheckCounter) -> None:
        packets, octets = self._count(command.line, command.name, command.index)
        count = packets if command.unit == "packets" else octets
        if not COMPARE[command.condition](count, command.value):
            condition = f"{command.unit} {command.condition} {command.value}"
            raise CheckFailed(
                f"line {command.line}: {command.name}({command.index}) has {count} {command.unit}, "
                f"expected {condition}"
            )

    def _count(self, line: int, name: str, index: str) -> tuple[int, int]:
        # The counter of an entry is a direct counter; the name in the script is not read.
        if not index[0].isdigit():
            entry = self._entries.get(index.lstrip("$"))
            if entry is None:
                raise ScriptError(line, f"no entry is called '{index}'")

            record = entry.table.find(entry.match, entry.priority)[2]
            return record.packets, record.octets

        cell = self._arrays.counter(line, name, int(index, 0))
        return int(cell[0]), int(cell[1])

    # Commands of the switch

    def _direct(self, command: Direct) -> None:
        handler = HANDLERS.get(command.word)
        # Commands without a handler only print something, as `mirroring_get`, or say nothing new,
        # as `no_packet`.
        if handler is not None:
            handler(self, command.line, command.arguments)
        elif (for_arrays := arrays.HANDLERS.get(command.word)) is not None:
            for_arrays(self._arrays, command.line, command.arguments)
        elif (for_groups := multicast.HANDLERS.get(command.word)) is not None:
            for_groups(self._multicast, command.line, command.arguments)

    def _wait(self, _line: int, _arguments: tuple[str, ...]) -> None:
        self.now_ps += PS_PER_SECOND

    def _value_set(self, line: int, arguments: tuple[str, ...]) -> None:
        """Add a member: a value, or a value and a mask, per field."""
        names = [item.name for item in self.pipeline.program.value_sets]
        value_set = find_named(
            line, "value set", arguments[0], zip(names, self.pipeline.value_sets, strict=True)
        )
        member = []

        for text in arguments[1:]:
            value, mark, mask = text.partition("&&&")
            first, *second = numbers(line, [value, mask] if mark else [value])
            # Low, high and mask; -1 has all bits set, whatever the width.
            member.append((first, first, second[0] if second else -1))

        value_set.replace([*value_set.members, ((), tuple(member))])

    def _expect_log(self, line: int, arguments: tuple[str, ...]) -> None:
        logged = self.logged.pop(0) if self.logged else None
        if logged != arguments[0]:
            raise CheckFailed(
                f"line {line}: expected the log line {arguments[0]!r}, found {logged!r}"
            )

    def _expect_digest(self, line: int, arguments: tuple[str, ...]) -> None:
        expected = tuple(numbers(line, arguments[1:]))
        number, values = self.digests.pop(0) if self.digests else (None, ())
        name = self.pipeline.program.learn_lists[number].name if number is not None else None

        if (name, values) != (arguments[0], expected):
            raise CheckFailed(
                f"line {line}: expected the digest {arguments[0]} {expected}, found {name} {values}"
            )


HANDLERS: dict[str, Callable[[Bench, int, tuple[str, ...]], None]] = {
    "wait": Bench._wait,
    "value_set": Bench._value_set,
    "expect_log": Bench._expect_log,
    "expect_digest": Bench._expect_digest,
}
