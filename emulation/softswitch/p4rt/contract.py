"""The P4Info as the contract of every call, tied to the pipeline that it describes.

P4Info and BMv2 JSON name the same things; the first gives the ids, the second what runs. A name
that only one of them knows makes the pair unusable, and is reported when the pair is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from p4.config.v1 import p4info_pb2

from emulation.softswitch.codegen.program import Array, FieldList, KeyField
from emulation.softswitch.errors import Code, EntryError, PipelineError
from emulation.softswitch.pipeline import Pipeline
from emulation.softswitch.profiles import ActionProfile
from emulation.softswitch.tables import Table, needs_priority
from emulation.softswitch.valuesets import ValueSetState

T = TypeVar("T")
Add = Callable[[], Any]
SCOPE = p4info_pb2.ActionRef


@dataclass(frozen=True, slots=True)
class Parameter:
    """A run-time parameter of an action."""

    id: int
    name: str
    bits: int


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """An action as P4Info declares it."""

    id: int
    name: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class MatchSpec:
    """One field of a match key: its P4Info id, its kind (exact, lpm, ...) and its width."""

    id: int
    name: str
    kind: str
    bits: int


@dataclass(frozen=True, slots=True)
class ProfileSpec:
    """An action profile or selector."""

    id: int
    name: str
    size: int
    max_group_size: int
    counts_members: bool
    max_member_weight: int
    has_selector: bool
    runtime: ActionProfile
    table_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table: ids of P4Info beside the numbers of the pipeline."""

    id: int
    name: str
    key: tuple[MatchSpec, ...]
    actions: Mapping[int, ActionSpec]
    numbers: Mapping[int, int]
    not_default: frozenset[int]
    only_default: frozenset[int]
    has_const_default: bool
    is_const: bool
    profile: ProfileSpec | None
    counter: p4info_pb2.DirectCounter | None
    meter: p4info_pb2.DirectMeter | None
    supports_timeout: bool
    runtime: Table

    @property
    def needs_priority(self) -> bool:
        """Whether entries carry a priority."""
        return needs_priority(self.runtime.spec)

    def number(self, action: int) -> int:
        """Return the pipeline's number of one of the table's actions."""
        return self.numbers[action]

    def action_of(self, number: int) -> ActionSpec | None:
        """Return the action with the pipeline's number, None for no action."""
        return next((self.actions[i] for i, n in self.numbers.items() if n == number), None)


@dataclass(frozen=True, slots=True)
class ArrayInfo:
    """An indirect counter, meter or register array with its cells."""

    id: int
    name: str
    array: Array
    cells: list[Any]
    declaration: Any


@dataclass(frozen=True, slots=True)
class ValueSetInfo:
    """A parser value set."""

    id: int
    name: str
    key: tuple[MatchSpec, ...]
    size: int
    runtime: ValueSetState


@dataclass(frozen=True, slots=True)
class DigestInfo:
    """A digest: the learn list of the pipeline that feeds it."""

    id: int
    name: str
    learn_id: int
    is_struct: bool
    is_tuple: bool


@dataclass(frozen=True, slots=True)
class PacketHeader:
    """The controller header of packet-ins or packet-outs: (metadata id, name, width in bits)."""

    fields: tuple[tuple[int, str, int], ...]

    @property
    def bytes(self) -> int:
        """The length of the header in front of the frame."""
        return (sum(bits for _, _, bits in self.fields) + 7) // 8


class Contract:
    """What a controller may do with one pipeline."""

    def __init__(self, p4info: p4info_pb2.P4Info, pipeline: Pipeline) -> None:
        self.p4info = p4info
        self.pipeline = pipeline
        # P4Info may give a translated parameter another width than it has in the device (18.1).
        bits = {action.name: action.parameter_bits for action in pipeline.program.actions.values()}
        self.actions = {
            action.preamble.id: _action(action, bits.get(action.preamble.name))
            for action in p4info.actions
        }

        self.profiles = {item.preamble.id: self._profile(item) for item in p4info.action_profiles}
        self.tables = {table.preamble.id: self._table(table) for table in p4info.tables}
        self.counters = self._arrays(
            p4info.counters, pipeline.program.counters, pipeline.counters, "counter"
        )
        self.meters = self._arrays(p4info.meters, pipeline.program.meters, pipeline.meters, "meter")

        for meter in (*p4info.meters, *p4info.direct_meters):
            if meter.spec.type == p4info_pb2.MeterSpec.SINGLE_RATE_THREE_COLOR:
                raise PipelineError(
                    f"meter {meter.preamble.name!r}:"
                    " single-rate three-colour meters are not supported"
                )

        self.registers = self._arrays(
            p4info.registers, pipeline.program.registers, pipeline.registers, "register"
        )
        self.value_sets = {item.preamble.id: self._value_set(item) for item in p4info.value_sets}
        self.digests = {item.preamble.id: self._digest(item) for item in p4info.digests}
        # A program without these headers can still send packets: they are payload only.
        headers = {
            item.preamble.name: _packet_header(item) for item in p4info.controller_packet_metadata
        }
        self.packet_in = headers.get("packet_in", PacketHeader(()))
        self.packet_out = headers.get("packet_out", PacketHeader(()))

    def table(self, table_id: int) -> TableInfo:
        """Return a table or raise NOT_FOUND."""
        return known(self.tables, table_id, "table")

    def profile(self, profile_id: int) -> ProfileSpec:
        """Return an action profile or raise NOT_FOUND."""
        return known(self.profiles, profile_id, "action profile")

    def _table(self, declared: p4info_pb2.Table) -> TableInfo:
        name = declared.preamble.name
        runtime = _named(self.pipeline.tables, name, "table", key=lambda table: table.spec.name)
        _install_mutability(declared, runtime)
        numbers = {self.pipeline.program.actions[i].name: i for i in runtime.spec.actions}
        references = [
            (known(self.actions, ref.id, "action"), ref.scope) for ref in declared.action_refs
        ]

        for action, _ in references:
            if action.name not in numbers:
                raise PipelineError(
                    f"table {name!r} has no action {action.name!r} in the device config"
                )

        return TableInfo(
            id=declared.preamble.id,
            name=name,
            key=_key(name, declared.match_fields, runtime.spec.key),
            actions={action.id: action for action, _ in references},
            numbers={action.id: numbers[action.name] for action, _ in references},
            # Scopes restrict where an action may stand: @tableonly and @defaultonly.
            not_default=frozenset(
                action.id for action, scope in references if scope == SCOPE.TABLE_ONLY
            ),
            only_default=frozenset(
                action.id for action, scope in references if scope == SCOPE.DEFAULT_ONLY
            ),
            # 0 is no id of P4Info: the field is unset.
            has_const_default=declared.const_default_action_id != 0,
            is_const=declared.is_const_table,
            profile=self.profiles.get(declared.implementation_id),
            counter=_direct(self.p4info.direct_counters, declared),
            meter=_direct(self.p4info.direct_meters, declared),
            supports_timeout=declared.idle_timeout_behavior == p4info_pb2.Table.NOTIFY_CONTROL,
            runtime=runtime,
        )

    def _profile(self, declared: p4info_pb2.ActionProfile) -> ProfileSpec:
        name = declared.preamble.name
        profiles = zip(self.pipeline.program.profiles(), self.pipeline.profiles, strict=True)
        _, runtime = _named(profiles, name, "action profile", key=lambda pair: pair[0].name)

        return ProfileSpec(
            declared.preamble.id,
            name,
            size=declared.size,
            max_group_size=declared.max_group_size,
            counts_members=declared.HasField("sum_of_members"),
            max_member_weight=declared.sum_of_members.max_member_weight,
            has_selector=declared.with_selector,
            runtime=runtime,
            table_ids=tuple(declared.table_ids),
        )

    def _arrays(
        self,
        declared: Iterable[Any],
        arrays: Iterable[Array],
        cells: Iterable[list[Any]],
        what: str,
    ) -> dict[int, ArrayInfo]:
        by_name = {array.name: (array, cell) for array, cell in zip(arrays, cells, strict=True)}
        found = {}
        for item in declared:
            name = item.preamble.name
            if name not in by_name:
                raise PipelineError(f"the device config has no {what} {name!r}")

            found[item.preamble.id] = ArrayInfo(item.preamble.id, name, *by_name[name], item)

        return found

    def _value_set(self, declared: p4info_pb2.ValueSet) -> ValueSetInfo:
        name = declared.preamble.name
        pairs = zip(self.pipeline.program.value_sets, self.pipeline.value_sets, strict=True)
        _, runtime = _named(pairs, name, "value set", key=lambda pair: pair[0].name)
        key = tuple(_match_field(field, field.bitwidth) for field in declared.match)

        return ValueSetInfo(declared.preamble.id, name, key, size=declared.size, runtime=runtime)

    def _digest(self, declared: p4info_pb2.Digest) -> DigestInfo:
        name = declared.preamble.name
        lists: Iterable[FieldList] = self.pipeline.program.learn_lists.values()
        learn = _named(lists, name, "digest", key=lambda item: item.name)
        shape = declared.type_spec.WhichOneof("type_spec")

        return DigestInfo(
            declared.preamble.id,
            name,
            learn_id=learn.id,
            is_struct=shape == "struct",
            is_tuple=shape == "tuple",
        )


def known(items: Mapping[int, T], number: int, what: str) -> T:
    """Return the thing with this id or raise NOT_FOUND."""
    if number not in items:
        raise EntryError(Code.NOT_FOUND, f"the P4Info has no {what} {number}")

    return items[number]


def _named(items: Iterable[T], name: str, what: str, key: Any) -> T:
    for item in items:
        if key(item) == name:
            return item

    raise PipelineError(f"the device config has no {what} {name!r}")


def _action(declared: p4info_pb2.Action, bits: tuple[int, ...] | None) -> ActionSpec:
    """Return an action.

    `bits` are the widths of its parameters in the device config, None where it is not there.
    """
    name = declared.preamble.name
    # An action that the device config does not have is never run; P4Info's widths will do.
    widths = bits or tuple(item.bitwidth for item in declared.params)
    if len(widths) != len(declared.params):
        raise PipelineError(
            f"action {name!r}: the parameters of the P4Info are not those of the device config"
        )

    where = f"a parameter of action {name!r}"
    parameters = (
        Parameter(item.id, item.name, _width(item, width, where))
        for item, width in zip(declared.params, widths, strict=True)
    )

    return ActionSpec(declared.preamble.id, name, tuple(parameters))


def _width(declared: Any, bits: int, where: str) -> int:
    """Return how many bits a value has in the device.

    Translation by P4Runtime is the identity, to numbers only.
    """
    if not declared.bitwidth:
        raise PipelineError(f"{where} is translated to a string, which is not supported")

    if declared.bitwidth != bits and not declared.type_name.name:
        raise PipelineError(
            f"{where} has {declared.bitwidth} bits in the P4Info and {bits} in the device config"
        )

    # Both sides must be able to hold the value.
    return min(bits, int(declared.bitwidth))


def _key(
    name: str, declared: Iterable[p4info_pb2.MatchField], fields: tuple[KeyField, ...]
) -> tuple[MatchSpec, ...]:
    listed = list(declared)
    if len(listed) != len(fields):
        raise PipelineError(
            f"table {name!r}: the key of the P4Info is not the key of the device config"
        )

    where = f"the key of table {name!r}"
    return tuple(
        _match_field(item, _width(item, field.bits, where))
        for item, field in zip(listed, fields, strict=True)
    )


def _match_field(declared: p4info_pb2.MatchField, bits: int) -> MatchSpec:
    kind = p4info_pb2.MatchField.MatchType.Name(declared.match_type).lower()
    return MatchSpec(declared.id, declared.name, kind, bits)


def _install_mutability(declared: p4info_pb2.Table, table: Table) -> None:
    """Let entries change that P4Info says a table has from the start, but not for good."""
    if declared.has_initial_entries and not declared.is_const_table:
        table.is_const = False
        for entry in table:
            entry[2].is_const = False


def _direct(resources: Iterable[Any], table: p4info_pb2.Table) -> Any:
    # A table refers to its direct counter and meter by one list of ids.
    wanted = {*table.direct_resource_ids}
    return next((resource for resource in resources if resource.preamble.id in wanted), None)


def _packet_header(declared: p4info_pb2.ControllerPacketMetadata) -> PacketHeader:
    for item in declared.metadata:
        if not item.bitwidth:
            raise PipelineError(
                f"metadata {item.name!r} of {declared.preamble.name!r} is translated,"
                " which is not supported"
            )

    return PacketHeader(tuple((item.id, item.name, item.bitwidth) for item in declared.metadata))
