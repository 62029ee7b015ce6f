"""The BMv2 JSON of a whole program (behavioral-model, docs/JSON_format.md, version 2.23)."""

from __future__ import annotations

from emulation.compiler.backend.encode import Json, expression, field, hexstr, lvalue, source_info
from emulation.compiler.backend.pipelines import Actions, Numbers, pipeline
from emulation.compiler.backend.states import parse_states
from emulation.compiler.diagnostics import Span
from emulation.compiler.midend import ir
from emulation.compiler.midend.layout import SCALARS, STANDARD_METADATA, flat_fields
from emulation.compiler.midend.operands import bits_of
from emulation.compiler.semantics import types as ty
from emulation.compiler.semantics.annotations import string_annotation
from emulation.compiler.semantics.scope import fail

VERSION = [2, 23]


def bmv2_json(switch: ir.Switch, program_name: str) -> Json:
    """Return what simple_switch loads."""
    actions = Actions()
    numbers = Numbers()
    # First, because it adds scalars for its branches and keys.
    states = parse_states(switch.states, switch.layout)
    sources = [
        ("ingress", switch.ingress, switch.ingress_span),
        ("egress", switch.egress, switch.egress_span),
    ]
    pipelines = [
        pipeline(name, number, flow=flow, span=span, actions=actions, numbers=numbers)
        for number, (name, flow, span) in enumerate(sources)
    ]

    calculations, checksums = _checksums(switch)
    return {
        "header_types": _header_types(switch),
        "headers": _headers(switch),
        "header_stacks": _stacks(switch, "header"),
        "header_union_types": _union_types(switch),
        "header_unions": _unions(switch),
        "header_union_stacks": _stacks(switch, "header_union"),
        "field_lists": _field_lists(switch),
        "errors": [[name, number] for number, name in enumerate(switch.program.errors)],
        "enums": _enums(switch),
        "parsers": [{"name": "parser", "id": 0, "init_state": "start", "parse_states": states}],
        "parse_vsets": _value_sets(switch),
        "deparsers": [_deparser(switch)],
        "meter_arrays": _meters(switch),
        "counter_arrays": _counters(switch),
        "register_arrays": _registers(switch),
        "calculations": calculations,
        "learn_lists": _learn_lists(switch),
        "actions": actions.json,
        "pipelines": pipelines,
        "checksums": checksums,
        "force_arith": [],
        "extern_instances": _externs(switch),
        "field_aliases": _aliases(switch),
        "program": program_name,
        "__meta__": {"version": VERSION, "compiler": "ofan"},
    }


def _externs(switch: ir.Switch) -> list[Json]:
    """Return the externs that are left to a plug-in of the target."""
    foreign = [item for item in switch.objects if item.is_foreign]
    return [
        {
            "name": item.name,
            "id": number,
            "type": item.kind,
            "source_info": source_info(item.source.span),
            "attribute_values": [_attribute(name, value) for name, value in item.args.items()],
        }
        for number, item in enumerate(foreign)
    ]


def _attribute(name: str, value: int | str) -> Json:
    if isinstance(value, str):
        return {"name": name, "type": "string", "value": value}

    return {"name": name, "type": "hexstr", "value": hexstr(value)}


# Storage


def _used_types(switch: ir.Switch) -> list[ty.Struct]:
    """Return the header types that have instances, in the order of the instances."""
    used: dict[ty.Struct, None] = {
        instance.type: None for instance in switch.layout.headers.values()
    }
    return list(used)


def _header_types(switch: ir.Switch) -> list[Json]:
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
    given = string_annotation(header.annotations, "name") or header.name
    # Instances of one generic header are different types.
    return given.removeprefix(".") + "".join(f"_{ty.show(arg)}" for arg in header.args)


def _standard(switch: ir.Switch) -> ty.Struct:
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


def _header_fields(header: ty.Struct, switch: ir.Switch) -> list[list[object]]:
    flat = flat_fields(header)
    width = sum(ty.width_of(type_) for _, type_ in flat)
    if width % 8:
        fail(
            f"header {header.name} has {width} bits, but the target needs whole bytes",
            _span_of(header, switch),
        )

    return [_field(name, type_) for name, type_ in flat]


def _span_of(header: ty.Struct, switch: ir.Switch) -> Span:
    return switch.program.spans.get(header, switch.program.main.span)


def _headers(switch: ir.Switch) -> list[Json]:
    fixed = [(SCALARS, SCALARS, True), (STANDARD_METADATA, STANDARD_METADATA, True)]
    named = [
        (item.name, _type_name(item.type), item.metadata) for item in switch.layout.headers.values()
    ]
    return [
        # `pi_omit` keeps PI, BMv2's P4Runtime library, from listing the header.
        {"name": name, "id": number, "header_type": type_, "metadata": metadata, "pi_omit": True}
        for number, (name, type_, metadata) in enumerate([*fixed, *named])
    ]


def _header_ids(switch: ir.Switch) -> dict[str, int]:
    # Behind scalars and standard_metadata (see `_headers`).
    return {name: number for number, name in enumerate(switch.layout.headers, start=2)}


def _stacks(switch: ir.Switch, kind: str) -> list[Json]:
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


def _union_types(switch: ir.Switch) -> list[Json]:
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


def _unions(switch: ir.Switch) -> list[Json]:
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


def _aliases(switch: ir.Switch) -> list[list[object]]:
    """Return the target's own names of the standard metadata."""
    return [
        [alias, [STANDARD_METADATA, item.name]]
        for item in _standard(switch).fields
        if (alias := string_annotation(item.annotations, "alias"))
    ]


def _enums(switch: ir.Switch) -> list[Json]:
    return [
        {"name": enum.name, "entries": [[member, enum.value(member)] for member in enum.members]}
        for enum in switch.program.enums
        # The others are numbers wherever the target sees them.
        if enum.underlying is None
    ]


# Lists


def _field_lists(switch: ir.Switch) -> list[Json]:
    """Return the lists of the user metadata that clones and the like keep; ids start at 1."""
    return [
        {
            "id": number,
            "name": f"field_list{index}" if index >= 0 else "empty",
            "elements": [lvalue(item) for item in items],
        }
        for number, (index, items) in enumerate(switch.field_lists.items(), start=1)
    ]


def _learn_lists(switch: ir.Switch) -> list[Json]:
    return [
        {
            "id": number,
            "name": digest.name,
            "source_info": source_info(digest.span),
            "elements": [lvalue(item) for item in digest.fields if isinstance(item, ir.FieldRef)],
        }
        for number, digest in enumerate(switch.digests, start=1)
    ]


def _value_sets(switch: ir.Switch) -> list[Json]:
    return [
        {"name": item.name, "id": number, "compressed_bitwidth": item.width, "max_size": item.size}
        for number, item in enumerate(switch.value_sets)
    ]


def _deparser(switch: ir.Switch) -> Json:
    span = switch.program.main.args[5].span
    order = [header.name for header in switch.emits]
    return {
        "name": "deparser",
        "id": 0,
        "source_info": source_info(span),
        "order": order,
        "primitives": [],
    }


# Calculations


def _input(value: ir.Value) -> Json:
    match value:
        case ir.Num(number, type_):
            width = ty.width_of(bits_of(type_))
            return {
                "type": "hexstr",
                "value": hexstr(number & ((1 << width) - 1), width),
                "bitwidth": width,
            }
        case ir.FieldRef(header, name):
            return field(header, name)

    raise AssertionError(value)


def _checksums(switch: ir.Switch) -> tuple[list[Json], list[Json]]:
    """Return the calculations, those of hashes first, and the checksums that use the others."""
    calculations = [
        _calculation(
            item.name,
            algorithm=item.algorithm,
            inputs=item.inputs,
            span=item.span,
            payload=False,
            number=number,
        )
        for number, item in enumerate(switch.calculations)
    ]

    checksums = []
    # Numbered after the hashes: all calculations share one list.
    for number, item in enumerate(switch.checksums):
        index = len(calculations)
        name = f"calc_{index}"
        calculations.append(
            _calculation(
                name,
                algorithm=item.algorithm,
                inputs=item.inputs,
                span=item.span,
                payload=item.payload,
                number=index,
            )
        )

        checksums.append(_checksum(item, name, number))

    return calculations, checksums


def _calculation(
    name: str, algorithm: str, inputs: tuple[ir.Value, ...], span: Span, payload: bool, number: int
) -> Json:
    listed = [_input(value) for value in inputs]
    if payload:
        listed.append({"type": "payload", "value": None})

    return {
        "name": name,
        "id": number,
        "source_info": source_info(span),
        "algo": algorithm,
        "input": listed,
    }


def _checksum(item: ir.Checksum, calculation: str, number: int) -> Json:
    return {
        "name": f"cksum_{number}",
        "id": number,
        "source_info": source_info(item.span),
        "target": [item.target.header, item.target.name],
        "type": "generic",
        "calculation": calculation,
        "verify": item.verify,
        "update": not item.verify,
        "if_cond": expression(item.condition),
    }


# Extern objects


def _objects(switch: ir.Switch, *kinds: str) -> list[ir.Object]:
    return [item for item in switch.objects if item.kind in kinds]


def _head(item: ir.Object, number: int) -> Json:
    return {"name": item.name, "id": number, "source_info": source_info(item.source.span)}


def _registers(switch: ir.Switch) -> list[Json]:
    made = []
    for number, item in enumerate(_objects(switch, "register")):
        assert isinstance(item.source.type, ty.Extern)
        element = bits_of(item.source.type.args[0])
        if not isinstance(element, ty.Bits) and element != ty.BOOL:
            fail("the target has registers of bit<> and int<> only", item.source.span)

        if item.args["size"] == 0:
            fail("a register needs at least one cell", item.source.span)

        made.append(
            {**_head(item, number), "size": item.args["size"], "bitwidth": ty.width_of(element)}
        )

    return made


def _bound_tables(switch: ir.Switch) -> dict[str, ir.Table]:
    """Return the table of every direct counter and meter; raises CompileError if one has two."""
    bound: dict[str, ir.Table] = {}
    for table in tables_of((*switch.ingress, *switch.egress)):
        for item in (table.counters, table.meters):
            if item is not None and bound.setdefault(item.name, table) is not table:
                fail(f"'{item.name}' is attached to two tables", table.source.span)

    return bound


def tables_of(flow: ir.Flow) -> list[ir.Table]:
    """Return the tables that a flow applies, each once, in order."""
    found: dict[str, ir.Table] = {}
    for item in flow:
        if isinstance(item, ir.Apply):
            found.setdefault(item.table.name, item.table)

        for table in tables_of(ir.parts_of(item)):
            found.setdefault(table.name, table)

    return list(found.values())


def _counters(switch: ir.Switch) -> list[Json]:
    bound = _bound_tables(switch)
    made: list[Json] = []
    for item in _objects(switch, "counter", "direct_counter"):
        head = _head(item, len(made))
        if item.kind == "counter":
            made.append({**head, "size": item.args["size"], "is_direct": False})
        elif item.name in bound:
            made.append({**head, "is_direct": True, "binding": bound[item.name].name})

    return made


def _meters(switch: ir.Switch) -> list[Json]:
    bound = _bound_tables(switch)
    made: list[Json] = []
    for item in _objects(switch, "meter", "direct_meter"):
        # Two rates, committed and peak (RFC 2698).
        head = {**_head(item, len(made)), "rate_count": 2, "type": item.args["type"]}
        if item.kind == "meter":
            made.append({**head, "is_direct": False, "size": item.args["size"]})
        elif item.name in bound:
            made.append({**head, **_direct_meter(item, bound[item.name], switch)})
        elif item.name in switch.meter_targets:
            fail(
                f"direct meter '{item.name}' is read, but no table has it as 'meters'",
                item.source.span,
            )

    return made


def _direct_meter(item: ir.Object, table: ir.Table, switch: ir.Switch) -> Json:
    target = switch.meter_targets.get(item.name)
    if target is None:
        fail(f"direct meter '{item.name}' is never read", item.source.span)

    result = [target.header, target.name]
    return {"is_direct": True, "size": table.size, "binding": table.name, "result_target": result}
