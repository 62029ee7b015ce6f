"""P4Info: the parts of a program that the control plane needs (P4Runtime 1.3, chapter 6)."""

from __future__ import annotations

from p4.config.v1 import p4info_pb2

from ofan_p4.compiler.backend.identifiers import Symbols, field_ids
from ofan_p4.compiler.backend.p4info_annotations import own_id, pairs
from ofan_p4.compiler.backend.p4info_draft import Draft
from ofan_p4.compiler.backend.p4info_objects import KIND_OF, add_object
from ofan_p4.compiler.backend.typespecs import (
    control_plane_width,
    struct_name,
    to_bytes,
)
from ofan_p4.compiler.midend.flow import Action, Key, Object, Table, tables_of
from ofan_p4.compiler.midend.layout import flat_fields
from ofan_p4.compiler.midend.switch import Switch, ValueSet
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.annotations import (
    find_annotation,
    has_annotation,
    string_annotation,
)
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.compiler.syntax.lexer import Kind, number, string
from ofan_p4.compiler.syntax.nodes import Annotations
from ofan_p4.diagnostics import Span

MATCH_TYPES = {
    "exact": p4info_pb2.MatchField.EXACT,
    "lpm": p4info_pb2.MatchField.LPM,
    "ternary": p4info_pb2.MatchField.TERNARY,
    "range": p4info_pb2.MatchField.RANGE,
    "optional": p4info_pb2.MatchField.OPTIONAL,
}


def p4info(switch: Switch) -> p4info_pb2.P4Info:
    """Describe a program to the control plane; raises CompileError for ids that clash."""
    draft = Draft(switch, p4info_pb2.P4Info(), Symbols(), _visible_tables(switch))
    _collect(draft)
    _write(draft)

    return draft.info


def _visible_tables(switch: Switch) -> list[Table]:
    tables = tables_of((*switch.ingress, *switch.egress))
    return [table for table in tables if not has_annotation(table.source.annotations, "hidden")]


# Collecting names


def _collect(draft: Draft) -> None:
    for table in draft.tables:
        draft.symbols.add("table", table.name, own_id(table.source.annotations), table.source.span)

    for action in _actions(draft):
        assert action.source is not None
        draft.symbols.add("action", action.name, own_id(action.source.annotations), action.span)

    for item in _objects(draft):
        kind = KIND_OF.get(item.kind, item.kind)
        draft.symbols.add(kind, item.name, own_id(item.source.annotations), item.source.span)

    for value_set in draft.switch.value_sets:
        span = value_set.source.span
        draft.symbols.add("value_set", value_set.name, own_id(value_set.source.annotations), span)

    for digest in draft.switch.digests:
        draft.symbols.add("digest", digest.name, None, digest.span)

    for header in _controller_headers(draft):
        span = draft.switch.program.spans[header]
        draft.symbols.add(
            "controller_header", struct_name(header), own_id(header.annotations), span
        )

    # Ids depend on all names of a kind, so none is known before this.
    draft.symbols.resolve()


def _actions(draft: Draft) -> list[Action]:
    """Return every visible action once; actions with bound arguments exist several times."""
    actions = {action.name: action for table in draft.tables for action in table.actions}
    actions |= {action.name: action for action in draft.switch.called if action.name not in actions}
    return [
        action
        for action in actions.values()
        if action.source is not None and not has_annotation(action.source.annotations, "hidden")
    ]


def _objects(draft: Draft) -> list[Object]:
    """Return the objects that P4Runtime has messages for."""
    return [item for item in draft.switch.objects if not item.is_foreign]


def _controller_headers(draft: Draft) -> list[ty.Struct]:
    return [
        header
        for header in draft.switch.program.headers
        if has_annotation(header.annotations, "controller_header")
    ]


# Writing


def _write(draft: Draft) -> None:
    draft.info.pkg_info.arch = "v1model"
    _package(draft)
    for table in draft.tables:
        _table(draft, table)

    for action in _actions(draft):
        _action(draft, action)

    for item in _objects(draft):
        add_object(draft, item)

    for header in _controller_headers(draft):
        _controller_header(draft, header)

    for value_set in draft.switch.value_sets:
        _value_set(draft, value_set)

    _digests(draft)


def _package(draft: Draft) -> None:
    annotations = draft.switch.program.main.annotations
    note = find_annotation(annotations, "pkginfo")
    for key, token in pairs(note) if note else ():
        if (
            key not in ("name", "version", "organization", "contact", "url", "arch")
            or token.kind is not Kind.STRING
        ):
            fail(f"@pkginfo has no text '{key}'", token.span)

        setattr(draft.info.pkg_info, key, string(token))

    note = find_annotation(annotations, "platform_property")
    for key, token in pairs(note) if note else ():
        properties = draft.info.pkg_info.platform_properties
        if key not in properties.DESCRIPTOR.fields_by_name or token.kind is not Kind.NUMBER:
            fail(f"@platform_property has no number '{key}'", token.span)

        setattr(properties, key, number(token).value)

    draft.annotate(draft.info.pkg_info, annotations, ("pkginfo", "platform_property"))


# Tables and actions


def _table(draft: Draft, table: Table) -> None:
    source = table.source
    message = draft.info.tables.add(size=table.size)
    draft.preamble(message.preamble, "table", table.name, source.annotations)

    for key, number_ in zip(table.keys, _key_ids(table), strict=True):
        _match_field(draft, message.match_fields.add(id=number_), key)

    for entry, action in zip(source.actions, table.actions, strict=True):
        # The control plane cannot choose a hidden action.
        if not draft.symbols.has("action", action.name):
            continue

        reference = message.action_refs.add(id=draft.symbols.id_of("action", action.name))
        draft.annotate(reference, entry.annotations)
        reference.scope = _scope(entry.annotations, entry.span)

    _default_action(draft, message, table)
    if source.entries_const:
        message.is_const_table = True

    message.has_initial_entries = bool(source.entries)
    _table_resources(draft, message, table)


def _key_ids(table: Table) -> list[int]:
    """Return the ids of the match fields; selector keys count but are not listed."""
    all_ids = field_ids([own_id(key.annotations) for key in table.source.keys])
    kept = [
        id_
        for id_, key in zip(all_ids, table.source.keys, strict=True)
        if key.match_kind != "selector"
    ]

    if len(set(kept)) < len(kept):
        fail("two match fields have the same @id", table.source.span)

    return kept


def _match_field(draft: Draft, message: p4info_pb2.MatchField, key: Key) -> None:
    type_ = key.source.expression.type
    message.name = key.name
    message.bitwidth = control_plane_width(type_)
    message.match_type = MATCH_TYPES[key.match_kind]
    draft.annotate(message, key.source.annotations)
    draft.name_type(type_, message)


def _default_action(draft: Draft, message: p4info_pb2.Table, table: Table) -> None:
    if not draft.symbols.has("action", table.default.name):
        return

    action_id = draft.symbols.id_of("action", table.default.name)
    if table.source.default_const:
        message.const_default_action_id = action_id

    message.initial_default_action.action_id = action_id
    assert table.default.source is not None
    params = table.default.source.runtime_params
    ids = field_ids([own_id(param.annotations) for param in params])

    for id_, param, value in zip(ids, params, table.default_args, strict=True):
        width = control_plane_width(param.type) or ty.width_of(param.type)
        message.initial_default_action.arguments.add(param_id=id_, value=to_bytes(value, width))


def _table_resources(draft: Draft, message: p4info_pb2.Table, table: Table) -> None:
    if table.implementation:
        message.implementation_id = draft.symbols.id_of("action_profile", table.implementation.name)

    for item in (table.counters, table.meters):
        if item:
            message.direct_resource_ids.append(draft.symbols.id_of(item.kind, item.name))

    if table.source.support_timeout:
        message.idle_timeout_behavior = p4info_pb2.Table.NOTIFY_CONTROL


def _action(draft: Draft, action: Action) -> None:
    assert action.source is not None
    message = draft.info.actions.add()
    draft.preamble(message.preamble, "action", action.name, action.source.annotations)
    # An action that is only called has no parameters of the control plane.
    params = action.source.runtime_params if action.params else ()

    for id_, param in zip(
        field_ids([own_id(param.annotations) for param in params]), params, strict=True
    ):
        item = message.params.add(
            id=id_, name=_param_name(param), bitwidth=control_plane_width(param.type)
        )
        draft.annotate(item, param.annotations)
        draft.name_type(param.type, item)


# The rest


def _controller_header(draft: Draft, header: ty.Struct) -> None:
    name = struct_name(header)
    shown = string_annotation(header.annotations, "controller_header") or name
    message = draft.info.controller_packet_metadata.add()
    draft.preamble(message.preamble, "controller_header", name, header.annotations)
    # Controllers look for `packet_in` and `packet_out`, whatever the header is called.
    message.preamble.name = message.preamble.alias = shown
    notes = {item.name: item.annotations for item in header.fields}
    flat = flat_fields(header)
    ids = field_ids([own_id(notes.get(name, ())) for name, _ in flat])

    for id_, (field_name, type_) in zip(ids, flat, strict=True):
        if has_annotation(notes.get(field_name, ()), "hidden"):
            continue

        item = message.metadata.add(id=id_, name=field_name, bitwidth=control_plane_width(type_))
        draft.annotate(item, notes.get(field_name, ()))
        draft.name_type(type_, item)


def _value_set(draft: Draft, value_set: ValueSet) -> None:
    message = draft.info.value_sets.add(size=value_set.size)
    draft.preamble(message.preamble, "value_set", value_set.name, value_set.source.annotations)
    match value_set.source.type:
        case ty.Struct(fields=fields):
            for id_, item in zip(
                field_ids([own_id(item.annotations) for item in fields]), fields, strict=True
            ):
                message.match.add(
                    id=id_,
                    name=item.name,
                    bitwidth=ty.width_of(item.type),
                    match_type=_value_match(item),
                )
        case type_:
            message.match.add(
                id=1, bitwidth=ty.width_of(type_), match_type=p4info_pb2.MatchField.EXACT
            )


def _digests(draft: Draft) -> None:
    done: set[str] = set()
    for digest in draft.switch.digests:
        name = digest.name
        # One digest may be sent in several places.
        if name in done:
            continue

        done.add(name)
        message = draft.info.digests.add()
        draft.preamble(message.preamble, "digest", name, ())
        message.type_spec.CopyFrom(draft.spec(digest.type))


def _param_name(param: ty.Parameter) -> str:
    """Return the control plane's name of a parameter."""
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
