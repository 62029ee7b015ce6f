"""The P4Info as the contract of every call, tied to the pipeline that it describes.

P4Info and BMv2 JSON name the same things; the first gives the ids, the second the code. A name in
only one document makes the pair unusable, and is reported when the pair is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from p4.config.v1 import p4info_pb2

from ofan_p4.softswitch.base.errors import Code, EntryError, PipelineError
from ofan_p4.softswitch.codegen.program import Array, FieldList, KeyField
from ofan_p4.softswitch.control.pipeline import Pipeline
from ofan_p4.softswitch.p4rt.specs import (
    ActionSpec,
    ArrayInfo,
    DigestInfo,
    MatchSpec,
    PacketHeader,
    Parameter,
    ProfileSpec,
    TableInfo,
    ValueSetInfo,
)
from ofan_p4.softswitch.p4rt.translation import Names, Translations, member_types
from ofan_p4.softswitch.state.tables import Table

T = TypeVar("T")
Add = Callable[[], Any]
Reader = Callable[[Any, Add], None]
SCOPE = p4info_pb2.ActionRef


class Contract:
    """The rights and ids of a controller with one pipeline."""

    def __init__(
        self,
        p4info: p4info_pb2.P4Info,
        pipeline: Pipeline,
        translations: Translations | None = None,
    ) -> None:
        self.p4info = p4info
        self.pipeline = pipeline
        self._translations = translations or Translations()
        # P4Info may give a translated parameter another width than it has in the device (18.1).
        bits = {action.name: action.parameter_bits for action in pipeline.program.actions.values()}
        self.actions = {
            action.preamble.id: self._action(action, bits.get(action.preamble.name))
            for action in p4info.actions
        }

        # One that no table uses need not be in the device config: nothing could be done with it.
        names = {profile.name for profile in pipeline.program.profiles()}
        self.profiles = {
            item.preamble.id: self._profile(item)
            for item in p4info.action_profiles
            if item.table_ids or item.preamble.name in names
        }
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
            item.preamble.name: self._packet_header(item)
            for item in p4info.controller_packet_metadata
        }
        self.packet_in = headers.get("packet_in", PacketHeader(()))
        self.packet_out = headers.get("packet_out", PacketHeader(()))

    def table(self, table_id: int) -> TableInfo:
        """Return a table or raise NOT_FOUND."""
        return known(self.tables, table_id, "table")

    def profile(self, profile_id: int) -> ProfileSpec:
        """Return an action profile or raise NOT_FOUND."""
        return known(self.profiles, profile_id, "action profile")

    def _names(self, declared: Any, bits: int, where: str) -> Names | None:
        """Return the strings of a translated type."""
        if declared.bitwidth:
            return None

        names = self._translations.of(declared.type_name.name, bits, self.p4info)
        if names is None:
            raise PipelineError(f"{where} has neither a width nor a type of strings")

        return names

    def _action(self, declared: p4info_pb2.Action, bits: tuple[int, ...] | None) -> ActionSpec:
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
            Parameter(
                item.id, item.name, _width(item, width, where), self._names(item, width, where)
            )
            for item, width in zip(declared.params, widths, strict=True)
        )

        return ActionSpec(declared.preamble.id, name, tuple(parameters))

    def _key(
        self, name: str, declared: Iterable[p4info_pb2.MatchField], fields: tuple[KeyField, ...]
    ) -> tuple[MatchSpec, ...]:
        listed = list(declared)
        if len(listed) != len(fields):
            raise PipelineError(
                f"table {name!r}: the key of the P4Info is not the key of the device config"
            )

        where = f"the key of table {name!r}"
        return tuple(
            self._match_field(item, _width(item, field.bits, where), where)
            for item, field in zip(listed, fields, strict=True)
        )

    def _match_field(
        self, declared: p4info_pb2.MatchField, bits: int, where: str = "a value set"
    ) -> MatchSpec:
        # A number that this version of P4Info does not name is no error of the protobuf.
        kinds = {number: name.lower() for name, number in p4info_pb2.MatchField.MatchType.items()}
        kind = kinds.get(declared.match_type)
        if kind is None:
            raise PipelineError(f"{where}: P4Info has no match type {declared.match_type}")

        # Value sets have no types by name.
        names = self._names(declared, bits, where) if declared.HasField("type_name") else None
        # 18.1: strings have no order and no bits.
        if names and kind not in ("exact", "optional"):
            raise PipelineError(f"{where}: a string cannot be matched by kind {kind}")

        return MatchSpec(declared.id, declared.name, bits, names, kind)

    def _packet_header(self, declared: p4info_pb2.ControllerPacketMetadata) -> PacketHeader:
        widths = self._header_widths([item.name for item in declared.metadata])
        where = f"metadata of {declared.preamble.name!r}"
        fields = (
            Parameter(
                item.id,
                item.name,
                item.bitwidth or widths.get(item.name, 0),
                self._names(item, widths.get(item.name, 0), where),
            )
            for item in declared.metadata
        )

        return PacketHeader(tuple(fields))

    def _header_widths(self, names: list[str]) -> dict[str, int]:
        """Return the widths of the fields of the header with these fields.

        P4Info gives none for strings, and does not say which header of the device config it means.
        """
        for header in self.pipeline.program.headers:
            widths = {field.name: field.bits for field in header.fields}
            if all(name in widths for name in names):
                return widths

        return {}

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
            key=self._key(name, declared.match_fields, runtime.spec.key),
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
        cells: Iterable[Sequence[Any]],
        noun: str,
    ) -> dict[int, ArrayInfo]:
        by_name = {array.name: (array, cell) for array, cell in zip(arrays, cells, strict=True)}
        infos = {}
        for item in declared:
            name = item.preamble.name
            if name not in by_name:
                raise PipelineError(f"the device config has no {noun} {name!r}")

            infos[item.preamble.id] = ArrayInfo(item.preamble.id, name, *by_name[name], item)

        return infos

    def _value_set(self, declared: p4info_pb2.ValueSet) -> ValueSetInfo:
        name = declared.preamble.name
        pairs = zip(self.pipeline.program.value_sets, self.pipeline.value_sets, strict=True)
        _, runtime = _named(pairs, name, "value set", key=lambda pair: pair[0].name)
        key = tuple(self._match_field(field, field.bitwidth) for field in declared.match)

        return ValueSetInfo(declared.preamble.id, name, key, size=declared.size, runtime=runtime)

    def _digest(self, declared: p4info_pb2.Digest) -> DigestInfo:
        name = declared.preamble.name
        lists: Iterable[FieldList] = self.pipeline.program.learn_lists.values()
        fed = [item for item in lists if item.name == name]
        if not fed:
            raise PipelineError(f"the device config has no digest {name!r}")

        learn_ids = tuple(item.id for item in fed)
        shape = declared.type_spec.WhichOneof("type_spec")

        return DigestInfo(
            declared.preamble.id,
            name,
            learn_ids=learn_ids,
            is_struct=shape == "struct",
            is_tuple=shape == "tuple",
            names=self._member_names(declared.type_spec, fed[0]),
        )

    def _member_names(self, spec: Any, fed: FieldList) -> tuple[Names | None, ...]:
        """Return the strings of a digest's members, which are the elements of its learn list."""
        kinds = member_types(spec, self.p4info)
        # Structs within structs are sent as their fields, of which the list has more.
        if len(kinds) != len(fed.elements):
            return ()

        program = self.pipeline.program
        return tuple(
            self._translations.of(kind, program.field(*element["value"]).bits, self.p4info)
            if kind and element["type"] == "field"
            else None
            for kind, element in zip(kinds, fed.elements, strict=True)
        )


def known(items: Mapping[int, T], number: int, noun: str) -> T:
    """Return the thing with this id or raise NOT_FOUND."""
    if number not in items:
        raise EntryError(Code.NOT_FOUND, f"the P4Info has no {noun} {number}")

    return items[number]


def _named(items: Iterable[T], name: str, noun: str, key: Any) -> T:
    for item in items:
        if key(item) == name:
            return item

    raise PipelineError(f"the device config has no {noun} {name!r}")


def _width(declared: Any, bits: int, where: str) -> int:
    """Return how many bits a value has in the device.

    Translation by P4Runtime to numbers is the identity; strings have no width.
    """
    if not declared.bitwidth:
        return bits

    if declared.bitwidth != bits and not declared.type_name.name:
        raise PipelineError(
            f"{where} has {declared.bitwidth} bits in the P4Info and {bits} in the device config"
        )

    # Both sides must be able to hold the value.
    return min(bits, int(declared.bitwidth))


def _install_mutability(declared: p4info_pb2.Table, table: Table) -> None:
    """Make the initial entries of a table changeable unless P4Info calls it constant."""
    if declared.has_initial_entries and not declared.is_const_table:
        table.is_const = False
        for entry in table:
            entry[2].is_const = False


def _direct(resources: Iterable[Any], table: p4info_pb2.Table) -> Any:
    # A table refers to its direct counter and meter by one list of ids.
    ids = {*table.direct_resource_ids}
    return next((resource for resource in resources if resource.preamble.id in ids), None)
