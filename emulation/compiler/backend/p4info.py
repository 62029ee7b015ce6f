"""P4Info: what the control plane needs to know of a program (P4Runtime 1.3, chapter 6)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from p4.config.v1 import p4info_pb2

from emulation.compiler.backend.identifiers import Symbols, field_ids
from emulation.compiler.backend.json import tables_of
from emulation.compiler.backend.p4info_annotations import annotate, limit, own_id, pairs
from emulation.compiler.backend.typespecs import (
    control_plane_width,
    struct_name,
    to_bytes,
    type_spec,
)
from emulation.compiler.diagnostics import Span
from emulation.compiler.midend import ir
from emulation.compiler.midend.layout import flat_fields
from emulation.compiler.semantics import types as ty
from emulation.compiler.semantics.annotations import (
    find_annotation,
    has_annotation,
    string_annotation,
)
from emulation.compiler.semantics.scope import fail
from emulation.compiler.syntax.lexer import Kind, number, string
from emulation.compiler.syntax.nodes import Annotations

MATCH_TYPES = {
    "exact": p4info_pb2.MatchField.EXACT,
    "lpm": p4info_pb2.MatchField.LPM,
    "ternary": p4info_pb2.MatchField.TERNARY,
    "range": p4info_pb2.MatchField.RANGE,
    "optional": p4info_pb2.MatchField.OPTIONAL,
}
COUNTER_UNITS = {
    "packets": p4info_pb2.CounterSpec.PACKETS,
    "bytes": p4info_pb2.CounterSpec.BYTES,
    "packets_and_bytes": p4info_pb2.CounterSpec.BOTH,
}
METER_UNITS = {"packets": p4info_pb2.MeterSpec.PACKETS, "bytes": p4info_pb2.MeterSpec.BYTES}
# P4Runtime has one message for both, with a flag for selectors.
KIND_OF = {"action_selector": "action_profile"}
"""Extern types whose kind in P4Runtime has another name."""


def p4info(switch: ir.Switch) -> p4info_pb2.P4Info:
    """Describe a program to the control plane; raises CompileError for ids that clash."""
    writer = _Writer(switch, p4info_pb2.P4Info(), Symbols(), _visible_tables(switch))
    writer.collect()
    writer.write()

    return writer.info


def _visible_tables(switch: ir.Switch) -> list[ir.Table]:
    tables = tables_of((*switch.ingress, *switch.egress))
    return [table for table in tables if not has_annotation(table.source.annotations, "hidden")]


@dataclass
class _Writer:
    switch: ir.Switch
    info: p4info_pb2.P4Info
    symbols: Symbols
    tables: list[ir.Table]

    # Collecting names

    def collect(self) -> None:
        for table in self.tables:
            self.symbols.add(
                "table", table.name, own_id(table.source.annotations), table.source.span
            )

        for action in self._actions():
            assert action.source is not None
            self.symbols.add("action", action.name, own_id(action.source.annotations), action.span)

        for item in self._objects():
            kind = KIND_OF.get(item.kind, item.kind)
            self.symbols.add(kind, item.name, own_id(item.source.annotations), item.source.span)

        for value_set in self.switch.value_sets:
            span = value_set.source.span
            self.symbols.add(
                "value_set", value_set.name, own_id(value_set.source.annotations), span
            )

        for digest in self.switch.digests:
            self.symbols.add("digest", digest.name, None, digest.span)

        for header in self._controller_headers():
            span = self.switch.program.spans[header]
            self.symbols.add(
                "controller_header", struct_name(header), own_id(header.annotations), span
            )

        # Ids depend on all names of a kind, so none is known before this.
        self.symbols.resolve()

    def _actions(self) -> list[ir.Action]:
        """Return every visible action once; one with bound arguments exists several times."""
        found = {action.name: action for table in self.tables for action in table.actions}
        found |= {action.name: action for action in self.switch.called if action.name not in found}
        return [
            action
            for action in found.values()
            if action.source is not None and not has_annotation(action.source.annotations, "hidden")
        ]

    def _objects(self) -> list[ir.Object]:
        """Return the objects that P4Runtime has messages for."""
        return [item for item in self.switch.objects if not item.is_foreign]

    def _controller_headers(self) -> list[ty.Struct]:
        return [
            header
            for header in self.switch.program.headers
            if has_annotation(header.annotations, "controller_header")
        ]

    # Writing

    def write(self) -> None:
        self.info.pkg_info.arch = "v1model"
        self._package()
        for table in self.tables:
            self._table(table)

        for action in self._actions():
            self._action(action)

        for item in self._objects():
            self._object(item)

        for header in self._controller_headers():
            self._controller_header(header)

        for value_set in self.switch.value_sets:
            self._value_set(value_set)

        self._digests()

    def _package(self) -> None:
        annotations = self.switch.program.main.annotations
        note = find_annotation(annotations, "pkginfo")
        for key, token in pairs(note) if note else ():
            if (
                key not in ("name", "version", "organization", "contact", "url", "arch")
                or token.kind is not Kind.STRING
            ):
                fail(f"@pkginfo has no text '{key}'", token.span)

            setattr(self.info.pkg_info, key, string(token))

        note = find_annotation(annotations, "platform_property")
        for key, token in pairs(note) if note else ():
            properties = self.info.pkg_info.platform_properties
            if key not in properties.DESCRIPTOR.fields_by_name or token.kind is not Kind.NUMBER:
                fail(f"@platform_property has no number '{key}'", token.span)

            setattr(properties, key, number(token).value)

        self._annotate(self.info.pkg_info, annotations, ("pkginfo", "platform_property"))

    def _annotate(
        self, message: object, annotations: Annotations, skip: Iterable[str] = ()
    ) -> None:
        annotate(message, annotations, self.switch.program.structured, skip)

    def _preamble(
        self,
        preamble: p4info_pb2.Preamble,
        kind: str,
        name: str,
        annotations: Annotations,
        skip: Iterable[str] = (),
    ) -> None:
        preamble.id = self.symbols.id_of(kind, name)
        preamble.name = name
        preamble.alias = self.symbols.aliases[name]
        self._annotate(preamble, annotations, skip)

    def _type_name(self, type_: ty.Type, message: p4info_pb2.MatchField) -> None:
        """Name the type of a field if it is a `type` declaration, and describe it."""
        spec = type_spec(type_, self.info.type_info, self.switch.program.errors)
        if spec.HasField("new_type"):
            message.type_name.name = spec.new_type.name

    # Tables and actions

    def _table(self, table: ir.Table) -> None:
        source = table.source
        made = self.info.tables.add(size=table.size)
        self._preamble(made.preamble, "table", table.name, source.annotations)

        for key, number_ in zip(table.keys, self._key_ids(table), strict=True):
            self._match_field(made.match_fields.add(id=number_), key)

        for entry, action in zip(source.actions, table.actions, strict=True):
            reference = made.action_refs.add(id=self.symbols.id_of("action", action.name))
            self._annotate(reference, entry.annotations)
            reference.scope = _scope(entry.annotations, entry.span)

        self._default_action(made, table)
        if source.entries_const:
            made.is_const_table = True

        made.has_initial_entries = bool(source.entries)
        self._table_resources(made, table)

    def _key_ids(self, table: ir.Table) -> list[int]:
        """Return the ids of the match fields; selector keys count but are not listed."""
        all_ids = field_ids([own_id(key.annotations) for key in table.source.keys])
        kept = [
            at
            for at, key in zip(all_ids, table.source.keys, strict=True)
            if key.match_kind != "selector"
        ]

        if len(set(kept)) < len(kept):
            fail("two match fields have the same @id", table.source.span)

        return kept

    def _match_field(self, made: p4info_pb2.MatchField, key: ir.Key) -> None:
        type_ = key.source.expression.type
        made.name = key.name
        made.bitwidth = control_plane_width(type_)
        made.match_type = MATCH_TYPES[key.match_kind]
        self._annotate(made, key.source.annotations)
        self._type_name(type_, made)

    def _default_action(self, made: p4info_pb2.Table, table: ir.Table) -> None:
        action_id = self.symbols.id_of("action", table.default.name)
        if table.source.default_const:
            made.const_default_action_id = action_id

        made.initial_default_action.action_id = action_id
        assert table.default.source is not None
        params = table.default.source.runtime_params
        ids = field_ids([own_id(param.annotations) for param in params])

        for at, param, value in zip(ids, params, table.default_args, strict=True):
            width = control_plane_width(param.type) or ty.width_of(param.type)
            made.initial_default_action.arguments.add(param_id=at, value=to_bytes(value, width))

    def _table_resources(self, made: p4info_pb2.Table, table: ir.Table) -> None:
        if table.implementation:
            made.implementation_id = self.symbols.id_of("action_profile", table.implementation.name)

        for item in (table.counters, table.meters):
            if item:
                made.direct_resource_ids.append(self.symbols.id_of(item.kind, item.name))

        if table.source.support_timeout:
            made.idle_timeout_behavior = p4info_pb2.Table.NOTIFY_CONTROL

    def _action(self, action: ir.Action) -> None:
        assert action.source is not None
        made = self.info.actions.add()
        self._preamble(made.preamble, "action", action.name, action.source.annotations)
        # An action that is only called has no parameters of the control plane.
        params = action.source.runtime_params if action.params else ()

        for at, param in zip(
            field_ids([own_id(param.annotations) for param in params]), params, strict=True
        ):
            item = made.params.add(
                id=at, name=param_name(param), bitwidth=control_plane_width(param.type)
            )
            self._annotate(item, param.annotations)
            self._type_name(param.type, item)

    # Extern objects

    def _object(self, item: ir.Object) -> None:
        match item.kind:
            case "counter" | "direct_counter":
                self._counter(item)
            case "meter" | "direct_meter":
                self._meter(item)
            case "register":
                self._register(item)
            case "action_profile" | "action_selector":
                self._action_profile(item)

    def _counter(self, item: ir.Object) -> None:
        made: p4info_pb2.Counter | p4info_pb2.DirectCounter | None
        if item.kind == "counter":
            made = self.info.counters.add(size=int(item.args["size"]))
            self._index_type(item, 0, made)
        else:
            made = self._direct(item, self.info.direct_counters)

        if made is not None:
            made.spec.unit = COUNTER_UNITS[str(item.args["type"])]
            self._preamble(made.preamble, item.kind, item.name, item.source.annotations)

    def _meter(self, item: ir.Object) -> None:
        made: p4info_pb2.Meter | p4info_pb2.DirectMeter | None
        if item.kind == "meter":
            made = self.info.meters.add(size=int(item.args["size"]))
            self._index_type(item, 0, made)
        else:
            made = self._direct(item, self.info.direct_meters)

        if made is not None:
            made.spec.unit = METER_UNITS[str(item.args["type"])]
            self._preamble(made.preamble, item.kind, item.name, item.source.annotations)

    def _direct(self, item: ir.Object, messages: Any) -> Any:
        """Add a direct counter or meter, but None where no visible table has it."""
        bound = (table for table in self.tables if item in (table.counters, table.meters))
        table = next(bound, None)
        if table is None:
            return None

        return messages.add(direct_table_id=self.symbols.id_of("table", table.name))

    def _register(self, item: ir.Object) -> None:
        assert isinstance(item.source.type, ty.Extern)
        made = self.info.registers.add(size=int(item.args["size"]))
        self._preamble(made.preamble, item.kind, item.name, item.source.annotations)
        # register<T, I>: the cells first, then the index, which is a parameter since 2020.
        element = item.source.type.args[0]
        made.type_spec.CopyFrom(type_spec(element, self.info.type_info, self.switch.program.errors))
        self._index_type(item, 1, made)

    def _index_type(
        self,
        item: ir.Object,
        position: int,
        made: p4info_pb2.Counter | p4info_pb2.Meter | p4info_pb2.Register,
    ) -> None:
        """Name the type of the index where the architecture makes it a parameter."""
        assert isinstance(item.source.type, ty.Extern)
        if len(item.source.type.args) <= position:
            return

        index = item.source.type.args[position]
        spec = type_spec(index, self.info.type_info, self.switch.program.errors)
        if spec.HasField("new_type"):
            made.index_type_name.name = spec.new_type.name

    def _action_profile(self, item: ir.Object) -> None:
        made = self.info.action_profiles.add(size=int(item.args["size"]))
        made.with_selector = item.kind == "action_selector"
        annotations = item.source.annotations
        special = ("max_group_size", "selector_size_semantics", "max_member_weight")
        self._preamble(
            made.preamble,
            kind="action_profile",
            name=item.name,
            annotations=annotations,
            skip=special,
        )

        users = (table for table in self.tables if table.implementation is item)
        made.table_ids.extend(self.symbols.id_of("table", table.name) for table in users)
        if made.with_selector:
            self._selector(made, annotations)

    def _selector(self, made: p4info_pb2.ActionProfile, annotations: Annotations) -> None:
        made.max_group_size = limit(annotations, "max_group_size")
        semantics = (string_annotation(annotations, "selector_size_semantics") or "").lower()
        if semantics == "sum_of_members":
            made.sum_of_members.max_member_weight = limit(annotations, "max_member_weight")
        elif semantics == "sum_of_weights":
            made.sum_of_weights.SetInParent()

    # The rest

    def _controller_header(self, header: ty.Struct) -> None:
        name = struct_name(header)
        shown = string_annotation(header.annotations, "controller_header") or name
        made = self.info.controller_packet_metadata.add()
        self._preamble(made.preamble, "controller_header", name, header.annotations)
        # Controllers look for `packet_in` and `packet_out`, whatever the header is called.
        made.preamble.name = made.preamble.alias = shown
        notes = {item.name: item.annotations for item in header.fields}
        flat = flat_fields(header)
        ids = field_ids([own_id(notes.get(name, ())) for name, _ in flat])

        for at, (field_name, type_) in zip(ids, flat, strict=True):
            if has_annotation(notes.get(field_name, ()), "hidden"):
                continue

            item = made.metadata.add(id=at, name=field_name, bitwidth=control_plane_width(type_))
            self._annotate(item, notes.get(field_name, ()))
            self._type_name(type_, item)

    def _value_set(self, value_set: ir.ValueSet) -> None:
        made = self.info.value_sets.add(size=value_set.size)
        self._preamble(made.preamble, "value_set", value_set.name, value_set.source.annotations)
        match value_set.source.type:
            case ty.Struct(fields=fields):
                for at, item in zip(
                    field_ids([own_id(item.annotations) for item in fields]), fields, strict=True
                ):
                    made.match.add(
                        id=at,
                        name=item.name,
                        bitwidth=ty.width_of(item.type),
                        match_type=_value_match(item),
                    )
            case type_:
                made.match.add(
                    id=1, bitwidth=ty.width_of(type_), match_type=p4info_pb2.MatchField.EXACT
                )

    def _digests(self) -> None:
        done: set[str] = set()
        for digest in self.switch.digests:
            name = digest.name
            # One digest may be sent in several places.
            if name in done:
                continue

            done.add(name)
            made = self.info.digests.add()
            self._preamble(made.preamble, "digest", name, ())
            made.type_spec.CopyFrom(
                type_spec(digest.type, self.info.type_info, self.switch.program.errors)
            )


def param_name(param: ty.Parameter) -> str:
    """Return what the control plane calls a parameter."""
    return string_annotation(param.annotations, "name") or param.name


def _scope(annotations: Annotations, span: Span) -> p4info_pb2.ActionRef.Scope:
    table_only = has_annotation(annotations, "tableonly")
    default_only = has_annotation(annotations, "defaultonly")
    if table_only and default_only:
        fail("an action cannot be both @tableonly and @defaultonly", span)

    if table_only:
        return p4info_pb2.ActionRef.TABLE_ONLY

    if default_only:
        return p4info_pb2.ActionRef.DEFAULT_ONLY

    return p4info_pb2.ActionRef.TABLE_AND_DEFAULT


def _value_match(item: ty.StructField) -> p4info_pb2.MatchField.MatchType:
    note = find_annotation(item.annotations, "match")
    kind = note.tokens[0].text if note and note.tokens else "exact"
    return MATCH_TYPES.get(kind, p4info_pb2.MatchField.EXACT)
