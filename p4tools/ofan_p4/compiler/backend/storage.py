"""A program's storage in BMv2's JSON: types of headers, their instances, stacks and unions."""

from __future__ import annotations

from ofan_p4.compiler.backend.encode import Json
from ofan_p4.compiler.midend.layout import SCALARS, STANDARD_METADATA, flat_fields
from ofan_p4.compiler.midend.operands import bits_of
from ofan_p4.compiler.midend.switch import Switch
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.annotations import string_annotation
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.diagnostics import Span


def storage(switch: Switch) -> Json:
    """Return the sections of the JSON that say where a program keeps its values."""
    return {
        "header_types": _header_types(switch),
        "headers": _headers(switch),
        "header_stacks": _stacks(switch, "header"),
        "header_union_types": _union_types(switch),
        "header_unions": _unions(switch),
        "header_union_stacks": _stacks(switch, "header_union"),
    }


def aliases(switch: Switch) -> list[list[object]]:
    """Return the target's own names of the standard metadata."""
    return [
        [alias, [STANDARD_METADATA, item.name]]
        for item in _standard(switch).fields
        if (alias := string_annotation(item.annotations, "alias"))
    ]


def _used_types(switch: Switch) -> list[ty.Struct]:
    """Return the header types that have instances, in the order of the instances."""
    used: dict[ty.Struct, None] = {
        instance.type: None for instance in switch.layout.headers.values()
    }
    return list(used)


def _header_types(switch: Switch) -> list[Json]:
    scalars = [_field(name, type_) for name, type_ in switch.layout.scalars.items()]
    made = [{"name": SCALARS, "id": 0, "fields": _padded(scalars)}]
    standard = [_field(name, type_) for name, type_ in flat_fields(_standard(switch))]
    made.append({"name": STANDARD_METADATA, "id": 1, "fields": _padded(standard)})

    for number, header in enumerate(_used_types(switch), start=2):
        made.append(
            {"name": _type_name(header), "id": number, "fields": _header_fields(header, switch)}
        )

    for json, header in zip(made[2:], _used_types(switch), strict=True):
        if any(isinstance(type_, ty.Varbit) for _, type_ in flat_fields(header)):
            # BMv2 wants it where a header has a field of variable length, in bytes.
            json["max_length"] = ty.width_of(header) // 8

    return made


def _type_name(header: ty.Struct) -> str:
    name = string_annotation(header.annotations, "name") or header.name
    # Instances of one generic header are different types.
    return name.removeprefix(".") + "".join(f"_{ty.show(arg)}" for arg in header.args)


def _standard(switch: Switch) -> ty.Struct:
    main = switch.program.main.args[0]
    # The parser of V1Switch: packet, headers, metadata, standard metadata.
    type_ = main.type.params[3].type  # type: ignore[union-attr]
    assert isinstance(type_, ty.Struct)

    return type_


def _field(name: str, type_: ty.Type) -> list[object]:
    below = bits_of(type_)
    if isinstance(below, ty.Varbit):
        return [name, "*"]

    signed = isinstance(below, ty.Bits) and below.signed
    return [name, ty.width_of(below), signed]


def _padded(fields: list[list[object]]) -> list[list[object]]:
    """Fill a metadata header up to whole bytes."""
    width = sum(int(str(item[1])) for item in fields)
    return [*fields, ["_padding", -width % 8, False]] if width % 8 else fields


def _header_fields(header: ty.Struct, switch: Switch) -> list[list[object]]:
    flat = flat_fields(header)
    width = sum(ty.width_of(type_) for _, type_ in flat)
    if width % 8:
        fail(
            f"header {header.name} has {width} bits, but the target needs whole bytes",
            _span_of(header, switch),
        )

    return [_field(name, type_) for name, type_ in flat]


def _span_of(header: ty.Struct, switch: Switch) -> Span:
    return switch.program.spans.get(header, switch.program.main.span)


def _headers(switch: Switch) -> list[Json]:
    fixed = [(SCALARS, SCALARS, True), (STANDARD_METADATA, STANDARD_METADATA, True)]
    named = [
        (item.name, _type_name(item.type), item.metadata) for item in switch.layout.headers.values()
    ]
    return [
        # `pi_omit` keeps PI, BMv2's P4Runtime library, from listing the header.
        {"name": name, "id": number, "header_type": type_, "metadata": metadata, "pi_omit": True}
        for number, (name, type_, metadata) in enumerate([*fixed, *named])
    ]


def _header_ids(switch: Switch) -> dict[str, int]:
    # Behind scalars and standard_metadata (see `_headers`).
    return {name: number for number, name in enumerate(switch.layout.headers, start=2)}


def _stacks(switch: Switch, kind: str) -> list[Json]:
    """Return the stacks of headers or of unions."""
    union = kind == "header_union"
    ids = (
        {name: number for number, name in enumerate(switch.layout.unions)}
        if union
        else _header_ids(switch)
    )

    chosen = [stack for stack in switch.layout.stacks.values() if stack.type.element.kind == kind]
    type_key, ids_key = (
        ("union_type", "header_union_ids") if union else ("header_type", "header_ids")
    )
    return [
        {
            "name": stack.name,
            "id": number,
            type_key: _type_name(stack.type.element),
            "size": stack.type.size,
            ids_key: [ids[element.name] for element in stack.elements],
        }
        for number, stack in enumerate(chosen)
    ]


def _union_types(switch: Switch) -> list[Json]:
    used = {union.type: None for union in switch.layout.unions.values()}
    return [
        {
            "name": _type_name(union),
            "id": number,
            "headers": [
                [item.name, _type_name(item.type)]
                for item in union.fields
                if isinstance(item.type, ty.Struct)
            ],
        }
        for number, union in enumerate(used)
    ]


def _unions(switch: Switch) -> list[Json]:
    ids = _header_ids(switch)
    return [
        {
            "name": union.name,
            "id": number,
            "union_type": _type_name(union.type),
            "header_ids": [ids[member.name] for member in union.members],
        }
        for number, union in enumerate(switch.layout.unions.values())
    ]
