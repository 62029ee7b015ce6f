"""A program's P4Info as the controller uses it: names to ids, entries to messages and back."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2

from controller.entries import Entry, Key, Match
from controller.errors import PlanError

LPM = p4info_pb2.MatchField.LPM


@dataclass(frozen=True, slots=True)
class MatchSpec:
    """A key field: exact, or LPM of `bits` bits."""

    id: int
    bits: int
    is_lpm: bool


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """An action and the ids of its parameters, in order."""

    id: int
    name: str
    parameters: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table, its key and the actions that it offers, by name and by id."""

    id: int
    name: str
    size: int
    matches: tuple[MatchSpec, ...]
    actions: Mapping[str, ActionSpec]
    by_id: Mapping[int, ActionSpec]


@dataclass(frozen=True, slots=True)
class RegisterSpec:
    """A register array."""

    id: int
    size: int


class Pipeline:
    """A program's tables and registers, by the last part of their names.

    Where several end alike they are known by their whole names. Raises PlanError where a P4Info
    cannot be read.
    """

    def __init__(self, p4info: p4info_pb2.P4Info) -> None:
        self.p4info = p4info

        # A control that is instantiated inside others has their names before its own; programs and
        # users call a table by the last part.
        actions = {a.preamble.id: _action_spec(a) for a in p4info.actions}
        self.tables = {
            name: _table_spec(table, name, actions) for name, table in _by_name(p4info.tables)
        }
        self.registers = {
            name: RegisterSpec(register.preamble.id, register.size)
            for name, register in _by_name(p4info.registers)
        }
        self._headers = {_name(h): _metadata_ids(h) for h in p4info.controller_packet_metadata}
        self._tables_by_id = {spec.id: spec for spec in self.tables.values()}

    @classmethod
    def read(cls, path: Path) -> "Pipeline":
        """Return the pipeline of a P4Info file in protobuf's text format."""
        try:
            return cls(text_format.Parse(path.read_text(), p4info_pb2.P4Info()))
        except (OSError, UnicodeDecodeError, text_format.ParseError) as error:
            raise PlanError(f"cannot read P4Info {path}: {' '.join(str(error).split())}") from None

    @property
    def max_uplinks(self) -> int | None:
        """Return how many uplinks the program compares, None where it compares none."""
        # The first parameter of `weigh` is the first uplink's port, the others are weights.
        table = self.tables.get("uplinks_of")
        return None if table is None else len(table.actions["weigh"].parameters) - 1

    def check_counts(self, switch: str, counts: Mapping[str, int]) -> None:
        """Raise PlanError where a switch needs more entries, given by table, than a table holds."""
        for table, count in counts.items():
            if count > self._table(table).size:
                raise PlanError(
                    f"{switch}: table {table} holds {self._table(table).size} entries, "
                    f"{count} are needed"
                )

    def fill(
        self, message: p4runtime_pb2.TableEntry, entry: Entry, with_action: bool = True
    ) -> None:
        """Write an entry into an empty message."""
        # An empty key stands for the default entry, which is marked and has no match ("Default
        # entry" in P4Runtime's section on tables).
        table = self._table(entry.table)
        message.table_id = table.id
        message.is_default_action = not entry.key

        if entry.key and len(entry.key) != len(table.matches):
            raise PlanError(
                f"table {table.name} has {len(table.matches)} key fields, not {len(entry.key)}"
            )

        # Not strict: a default entry has no fields whatever the table's key is.
        for spec, match in zip(table.matches, entry.key, strict=False):
            _fill_match(message, spec, match)

        if with_action:
            _fill_action(message.action.action, table, entry)

    def entry(self, message: p4runtime_pb2.TableEntry) -> Entry:
        """Return the entry that a message describes."""
        table = self._tables_by_id.get(message.table_id)
        if table is None:
            raise PlanError(f"the switch has a table {message.table_id:#x} that the P4Info lacks")

        action = table.by_id.get(message.action.action.action_id)
        if action is None:
            raise PlanError(
                f"table {table.name} has an entry with action {message.action.action.action_id:#x}"
            )

        # Parameters may come in any order: they are named by their ids.
        values = {
            param.param_id: int.from_bytes(param.value, "big")
            for param in message.action.action.params
        }

        key = () if message.is_default_action else _key(table, message)
        return Entry(
            table.name,
            key,
            action.name,
            tuple(values[parameter] for parameter in action.parameters),
        )

    def select(self, message: p4runtime_pb2.TableEntry, table: str) -> None:
        """Make a message stand for all entries of a table in a read request.

        A table without a key has its default only.
        """
        spec = self._table(table)
        message.table_id = spec.id
        message.is_default_action = not spec.matches

    def packet_out(self, port: int) -> list[tuple[int, bytes]]:
        """Return the (id, value) metadata of a packet-out through a port."""
        # All fields of the header need a value, padding too.
        fields = self._headers.get("packet_out", {})
        return [
            (number, _bytes(port if name == "egress_port" else 0))
            for name, number in fields.items()
        ]

    def ingress_port(self, message: p4runtime_pb2.PacketIn) -> int:
        """Return where a packet-in came from, 0 where the program does not say."""
        number = self._headers.get("packet_in", {}).get("ingress_port")
        values = [item.value for item in message.metadata if item.metadata_id == number]
        return int.from_bytes(values[0], "big") if values else 0

    def register(self, name: str) -> RegisterSpec:
        """Return a register array; raises PlanError."""
        if name not in self.registers:
            raise PlanError(f"the program has no register {name}")

        return self.registers[name]

    def _table(self, name: str) -> TableSpec:
        if name not in self.tables:
            raise PlanError(f"the program has no table {name}; it has {', '.join(self.tables)}")

        return self.tables[name]


def _name(message: Any) -> str:
    return str(message.preamble.name).rpartition(".")[2]


def _by_name(messages: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Yield each with the last part of its name, or with all of it where others end alike."""
    names = [_name(message) for message in messages]
    for name, message in zip(names, messages, strict=True):
        yield (name if names.count(name) == 1 else str(message.preamble.name)), message


def _action_spec(message: Any) -> ActionSpec:
    return ActionSpec(
        message.preamble.id, _name(message), tuple(param.id for param in message.params)
    )


def _table_spec(message: Any, name: str, actions: Mapping[int, ActionSpec]) -> TableSpec:
    matches = tuple(
        MatchSpec(field.id, field.bitwidth, field.match_type == LPM)
        for field in message.match_fields
    )

    offered = {reference.id: actions[reference.id] for reference in message.action_refs}
    names = {spec.name: spec for spec in offered.values()}
    return TableSpec(
        message.preamble.id,
        name=name,
        size=message.size,
        matches=matches,
        actions=names,
        by_id=offered,
    )


def _metadata_ids(header: Any) -> dict[str, int]:
    return {field.name: field.id for field in header.metadata}


def _fill_match(message: p4runtime_pb2.TableEntry, spec: MatchSpec, match: Match) -> None:
    if isinstance(match, int):
        message.match.add(field_id=spec.id).exact.value = _bytes(match)
        return

    value, length = match

    # P4Runtime leaves out a field that matches everything ("don't care").
    if length:
        field = message.match.add(field_id=spec.id)
        field.lpm.value = _bytes(value)
        field.lpm.prefix_len = length


def _fill_action(message: p4runtime_pb2.Action, table: TableSpec, entry: Entry) -> None:
    action = table.actions.get(entry.action)
    if action is None or len(action.parameters) != len(entry.arguments):
        raise PlanError(
            f"table {table.name} cannot take {entry.action} with {len(entry.arguments)} arguments"
        )

    message.action_id = action.id
    for parameter, value in zip(action.parameters, entry.arguments, strict=True):
        message.params.add(param_id=parameter, value=_bytes(value))


def _key(table: TableSpec, message: p4runtime_pb2.TableEntry) -> Key:
    fields = {field.field_id: field for field in message.match}
    return tuple(_match(spec, fields.get(spec.id)) for spec in table.matches)


def _match(spec: MatchSpec, field: Any) -> Match:
    if not spec.is_lpm:
        return int.from_bytes(field.exact.value, "big")

    # A field that was left out matches everything.
    return (
        (0, 0)
        if field is None
        else (int.from_bytes(field.lpm.value, "big"), int(field.lpm.prefix_len))
    )


def _bytes(number: int) -> bytes:
    """Return the shortest binary string of an unsigned integer."""
    # The canonical form of P4Runtime's "Bytestrings": no leading zeros, and 0 is one byte.
    return number.to_bytes(max(1, (number.bit_length() + 7) // 8), "big")
