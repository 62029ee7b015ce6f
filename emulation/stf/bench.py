"""A switch on the bench: does what a script says and keeps what comes out."""

from __future__ import annotations

import json
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from emulation.softswitch.errors import EntryError
from emulation.softswitch.meters import Rates
from emulation.softswitch.pipeline import DROP_PORT, Pipeline
from emulation.softswitch.switch import CloneSession, Pending, Replica, Switch
from emulation.softswitch.tables import USE_GROUP, Match, Table, needs_priority
from emulation.softswitch.trace import Walk
from emulation.softswitch.units import PS_PER_SECOND
from emulation.stf.matching import MatchError, match_of
from emulation.stf.script import (
    Add,
    Call,
    CheckCounter,
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


class CheckFailed(Exception):
    """A command that looks at the switch found something else than the script says.

    The message is the reason.
    """


class Bench:
    """A switch with a program.

    All ports exist, `random` is the lowest value, and time passes by `wait` only.
    """

    def __init__(self, program: Mapping[str, Any], walk: Walk | None = None) -> None:
        self.now_ps = 0
        self.switch = Switch(
            0, lambda: self.now_ps, lambda low, _high: low, range(DROP_PORT), walk=walk
        )
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
        self._nodes: list[tuple[Replica, ...]] = []
        self._members: dict[int, list[int]] = {}
        self._group_sessions: dict[int, int] = {}

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
                table = self._table(command.line, command.table)
                table.set_default(*self._choice(command.line, table, command.call))
            case CheckCounter():
                self._check_counter(command)
            case Direct():
                self._direct(command)

    def receive(self, port: int, frame: bytes) -> None:
        """Put a frame through the switch, with all its copies."""
        waiting: list[Pending] = self.switch.ingress(port, frame)
        for _ in range(MOST_ROUNDS):
            if not waiting:
                return

            for out in self.switch.egress(waiting.pop(0)):
                self.sent[out.port].append(out.frame)

            waiting += self.switch.take_requeued()

        raise CheckFailed(f"a packet of port {port} goes round for ever")

    # Tables

    def _table(self, line: int, name: str) -> Table:
        found: Table = _named(
            line,
            "table",
            name,
            (
                (table.spec.name, table)
                for table in self.pipeline.tables
                if not table.spec.is_hidden
            ),
        )

        return found

    def _choice(self, line: int, table: Table, call: Call) -> tuple[int, tuple[int, ...]]:
        """Return the number and the arguments of an action of the table."""
        offered = [self.pipeline.program.actions[number] for number in table.spec.actions]
        action = _named(
            line,
            f"action of {table.spec.name}",
            call.action,
            ((item.name, item) for item in offered),
        )

        given = dict(call.arguments)
        unknown = set(given) - set(action.parameter_names)
        missing = set(action.parameter_names) - set(given)

        if unknown or missing:
            wanted = ", ".join(action.parameter_names) or "no arguments"
            raise ScriptError(
                line, f"{action.name} takes {wanted}, found {', '.join(given) or 'none'}"
            )

        values = numbers(line, [given[name] for name in action.parameter_names])
        for name, value, bits in zip(
            action.parameter_names, values, action.parameter_bits, strict=True
        ):
            if value >> bits:
                raise ScriptError(
                    line, f"{action.name}: {name} = {value} does not fit in {bits} bits"
                )

        return action.id, tuple(values)

    def _match(self, line: int, table: Table, keys: Iterable[tuple[str, str]]) -> Match:
        names = [key.name for key in table.spec.key]
        given: dict[str, str] = {}
        for name, text in keys:
            given[key_name(line, names, name)] = text

        return tuple(match_of(key, given.get(key.name)) for key in table.spec.key)

    def _place(self, command: Add | Remove) -> Installed:
        table = self._table(command.line, str(command.table))
        priority = (command.priority or 0) if needs_priority(table.spec) else 0
        return Installed(table, self._match(command.line, table, command.keys), priority)

    def _add(self, command: Add) -> None:
        place = self._place(command)
        table = place.table
        choices = [self._choice(command.line, table, call) for call in command.calls]

        if table.is_const:
            raise ScriptError(command.line, f"the entries of {table.spec.name} are const")

        action, data = choices[0]
        if table.spec.profile is not None:
            profiles = [item.name for item in self.pipeline.program.profiles()]
            profile = self.pipeline.profiles[profiles.index(table.spec.profile)]
            action = USE_GROUP
            data = (profile.add_hidden([(choice, 1, None) for choice in choices]),)
        elif len(choices) > 1:
            raise ScriptError(
                command.line, f"{table.spec.name} has no action selector: one action only"
            )

        table.insert(place.match, place.priority, action, data)
        if command.id is not None:
            self._entries[command.id.lstrip("$")] = place

    def _remove(self, command: Remove) -> None:
        if command.table is None:
            for table in self.pipeline.tables:
                for match, priority in [] if table.is_const else list(table.entries):
                    table.delete(match, priority)

            return

        place = None if command.keys else self._entries.pop(command.table.lstrip("$"), None)
        place = place or self._place(command)
        place.table.delete(place.match, place.priority)

    # Counters

    def _check_counter(self, command: CheckCounter) -> None:
        packets, octets = self._count(command.line, command.name, command.index)
        found = packets if command.unit == "packets" else octets
        if not COMPARE[command.condition](found, command.value):
            wanted = f"{command.unit} {command.condition} {command.value}"
            raise CheckFailed(
                f"line {command.line}: {command.name}({command.index}) has {found} {command.unit}, expected {wanted}"
            )

    def _count(self, line: int, name: str, index: str) -> tuple[int, int]:
        if not index[0].isdigit():
            place = self._entries.get(index.lstrip("$"))
            if place is None:
                raise ScriptError(line, f"no entry is called '{index}'")

            record = place.table.find(place.match, place.priority)[2]
            return record.packets, record.octets

        cell = self._cell(
            line,
            kind="counter",
            name=name,
            specs=self.pipeline.program.counters,
            cells=self.pipeline.counters,
            index=int(index, 0),
        )

        return int(cell[0]), int(cell[1])

    def _array(
        self, line: int, kind: str, name: str, specs: Iterable[Any], cells: Iterable[Any]
    ) -> list[Any]:
        named = [
            (spec.name, cell) for spec, cell in zip(specs, cells, strict=True) if not spec.is_direct
        ]
        found: list[Any] = _named(line, kind, name, named)
        return found

    def _cell(
        self,
        line: int,
        kind: str,
        name: str,
        specs: Iterable[Any],
        cells: Iterable[Any],
        index: int,
    ) -> Any:
        array = self._array(line, kind, name, specs=specs, cells=cells)
        if not 0 <= index < len(array):
            raise ScriptError(line, f"{name} has no cell {index}, only 0 to {len(array) - 1}")

        return array[index]

    # Commands of the switch

    def _direct(self, command: Direct) -> None:
        handler = HANDLERS.get(command.word)
        if handler is not None:
            handler(self, command.line, command.arguments)

    def _wait(self, _line: int, _arguments: tuple[str, ...]) -> None:
        self.now_ps += PS_PER_SECOND

    def _mirroring_add(self, line: int, arguments: tuple[str, ...]) -> None:
        session, port = numbers(line, arguments[:2])
        self._group_sessions.pop(session, None)
        self.switch.replication.sessions[session] = CloneSession((Replica(port),))

    def _mirroring_add_mc(self, line: int, arguments: tuple[str, ...]) -> None:
        session, group = numbers(line, arguments[:2])
        self._group_sessions[session] = group
        self._refresh()

    def _mirroring_delete(self, line: int, arguments: tuple[str, ...]) -> None:
        session = numbers(line, arguments[:1])[0]
        self._group_sessions.pop(session, None)
        self.switch.replication.sessions.pop(session, None)

    def _group_create(self, line: int, arguments: tuple[str, ...]) -> None:
        self._members[numbers(line, arguments[:1])[0]] = []
        self._refresh()

    def _node_create(self, line: int, arguments: tuple[str, ...]) -> None:
        self._nodes.append(_replicas(line, arguments))

    def _node_update(self, line: int, arguments: tuple[str, ...]) -> None:
        node = self._node(line, arguments[0])
        rid = self._nodes[node][0].instance
        self._nodes[node] = _replicas(line, (str(rid), *arguments[1:]))
        self._refresh()

    def _node_associate(self, line: int, arguments: tuple[str, ...]) -> None:
        group = numbers(line, arguments[:1])[0]
        if group not in self._members:
            raise ScriptError(line, f"no multicast group {group}")

        self._members[group].append(self._node(line, arguments[1]))
        self._refresh()

    def _node(self, line: int, text: str) -> int:
        node = numbers(line, [text])[0]
        if not 0 <= node < len(self._nodes):
            raise ScriptError(line, f"no multicast node {node}")

        return node

    def _refresh(self) -> None:
        """Write the groups, and the sessions that clone to groups, as the replication engine keeps
        them.
        """
        replication = self.switch.replication
        for group, nodes in self._members.items():
            # The switch that the format was made for puts the latest node first.
            replication.groups[group] = tuple(
                replica for node in reversed(nodes) for replica in self._nodes[node]
            )

        for session, group in self._group_sessions.items():
            replication.sessions[session] = CloneSession(replication.groups.get(group, ()))

    def _counter_read(self, line: int, arguments: tuple[str, ...]) -> None:
        index, *wanted = _index_and_value(line, arguments)
        found = self._cell(
            line,
            kind="counter",
            name=arguments[0],
            specs=self.pipeline.program.counters,
            cells=self.pipeline.counters,
            index=index,
        )

        if wanted and wanted != found[: len(wanted)]:
            raise CheckFailed(
                f"line {line}: {arguments[0]}({index}) has {found[0]} packets and {found[1]} bytes, expected {wanted}"
            )

    def _counter_write(self, line: int, arguments: tuple[str, ...]) -> None:
        index, packets, octets = numbers(line, arguments[1:4])
        cell = self._cell(
            line,
            kind="counter",
            name=arguments[0],
            specs=self.pipeline.program.counters,
            cells=self.pipeline.counters,
            index=index,
        )

        cell[:] = [packets, octets]

    def _registers(self, line: int, name: str) -> list[int]:
        return self._array(
            line,
            kind="register",
            name=name,
            specs=self.pipeline.program.registers,
            cells=self.pipeline.registers,
        )

    def _register_read(self, line: int, arguments: tuple[str, ...]) -> None:
        index, *wanted = _index_and_value(line, arguments)
        cells = self._registers(line, arguments[0])
        found = cells[index] if index < len(cells) else None

        if wanted and wanted[0] != found:
            raise CheckFailed(
                f"line {line}: {arguments[0]}[{index}] is {found}, expected {wanted[0]}"
            )

    def _register_write(self, line: int, arguments: tuple[str, ...]) -> None:
        index, value = numbers(line, arguments[1:3])
        cells = self._registers(line, arguments[0])
        if index >= len(cells):
            raise ScriptError(
                line, f"{arguments[0]} has no cell {index}, only 0 to {len(cells) - 1}"
            )

        cells[index] = value

    def _register_reset(self, line: int, arguments: tuple[str, ...]) -> None:
        cells = self._registers(line, arguments[0])
        cells[:] = [0] * len(cells)

    def _meter_rates(self, line: int, arguments: tuple[str, ...]) -> None:
        index = numbers(line, arguments[1:2])[0]
        meter = self._cell(
            line,
            kind="meter",
            name=arguments[0],
            specs=self.pipeline.program.meters,
            cells=self.pipeline.meters,
            index=index,
        )

        meter.configure(_rates(line, arguments[2:4]))

    def _meter_array_rates(self, line: int, arguments: tuple[str, ...]) -> None:
        for meter in self._array(
            line,
            kind="meter",
            name=arguments[0],
            specs=self.pipeline.program.meters,
            cells=self.pipeline.meters,
        ):
            meter.configure(_rates(line, arguments[1:3]))

    def _value_set(self, line: int, arguments: tuple[str, ...]) -> None:
        """Add a member: a value, or a value and a mask, per field."""
        names = [item.name for item in self.pipeline.program.value_sets]
        found = _named(
            line, "value set", arguments[0], zip(names, self.pipeline.value_sets, strict=True)
        )
        member = []

        for text in arguments[1:]:
            value, mark, mask = text.partition("&&&")
            first, *second = numbers(line, [value, mask] if mark else [value])
            member.append((first, first, second[0] if second else -1))

        found.replace([*found.members, ((), tuple(member))])

    def _expect_log(self, line: int, arguments: tuple[str, ...]) -> None:
        found = self.logged.pop(0) if self.logged else None
        if found != arguments[0]:
            raise CheckFailed(
                f"line {line}: expected the log line {arguments[0]!r}, found {found!r}"
            )

    def _expect_digest(self, line: int, arguments: tuple[str, ...]) -> None:
        wanted = tuple(numbers(line, arguments[1:]))
        number, values = self.digests.pop(0) if self.digests else (None, ())
        name = self.pipeline.program.learn_lists[number].name if number is not None else None

        if (name, values) != (arguments[0], wanted):
            raise CheckFailed(
                f"line {line}: expected the digest {arguments[0]} {wanted}, found {name} {values}"
            )


HANDLERS: dict[str, Callable[[Bench, int, tuple[str, ...]], None]] = {
    "wait": Bench._wait,
    "mirroring_add": Bench._mirroring_add,
    "mirroring_add_mc": Bench._mirroring_add_mc,
    "mirroring_delete": Bench._mirroring_delete,
    "mc_mgrp_create": Bench._group_create,
    "mc_node_create": Bench._node_create,
    "mc_node_update": Bench._node_update,
    "mc_node_associate": Bench._node_associate,
    "counter_read": Bench._counter_read,
    "counter_write": Bench._counter_write,
    "register_read": Bench._register_read,
    "register_write": Bench._register_write,
    "register_reset": Bench._register_reset,
    "meter_set_rates": Bench._meter_rates,
    "meter_array_set_rates": Bench._meter_array_rates,
    "value_set": Bench._value_set,
    "expect_log": Bench._expect_log,
    "expect_digest": Bench._expect_digest,
}


def _index_and_value(line: int, arguments: tuple[str, ...]) -> list[int]:
    """Return the numbers behind an array's name: a cell, and what it should hold where that is
    said.
    """
    found = numbers(line, [argument for argument in arguments[1:] if argument != "=="])
    if not found:
        raise ScriptError(line, f"which cell of {arguments[0]}?")

    return found


def _replicas(line: int, arguments: tuple[str, ...]) -> tuple[Replica, ...]:
    rid, *ports = numbers(line, arguments)
    return tuple(Replica(port, rid) for port in sorted(ports))


def _rates(line: int, arguments: tuple[str, ...]) -> Rates:
    """`RATE:BURST` twice, committed and peak; rates are in units per microsecond."""
    found = []
    for argument in arguments:
        rate, _, burst = argument.partition(":")
        try:
            found += [round(float(rate) * 1e6), int(burst)]
        except ValueError:
            raise ScriptError(line, f"expected RATE:BURST, found {argument!r}") from None

    if len(found) != 4:
        raise ScriptError(line, "expected the committed and the peak RATE:BURST")

    return Rates(*found)


def _named(line: int, kind: str, name: str, named: Iterable[tuple[str, Any]]) -> Any:
    """Return what has the name, or the only thing whose name ends with it."""
    pairs = list(named)
    exact = [item for known, item in pairs if known == name]
    suffix = [item for known, item in pairs if known.endswith(f".{name}")] or [
        item for known, item in pairs if known.endswith(name)
    ]
    found = exact or suffix

    if not found:
        known = ", ".join(known for known, _ in pairs) or "there is none"
        raise ScriptError(line, f"no {kind} is called '{name}' ({known})")

    if len(found) > 1:
        raise ScriptError(line, f"{kind} '{name}' is ambiguous")

    return found[0]


def key_name(line: int, names: list[str], name: str) -> str:
    """Return the key that a script means: `$0` is `[0]`, `valid` a validity bit, and leading parts
    may be left out.
    """
    head, mark, tail = name.partition("$")
    digits = tail[: len(tail) - len(tail.lstrip("0123456789"))]
    wanted = f"{head}[{digits}]{tail[len(digits) :]}" if mark and digits else name
    spellings = [
        wanted,
        f"{wanted}.$valid$",
        f"{wanted}.isValid()",
        wanted.removesuffix("valid") + "$valid$",
    ]

    for spelling in spellings:
        if spelling in names:
            return spelling

    for spelling in (wanted, *spellings[3:], wanted.removesuffix("valid") + "isValid()"):
        for known in names:
            if known.endswith(f".{spelling}"):
                return known

    raise ScriptError(
        line, f"no key is called '{name}' ({', '.join(names) or 'the table has none'})"
    )
