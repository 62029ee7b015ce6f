"""The BMv2 JSON of a whole program (behavioral-model, docs/JSON_format.md, version 2.23)."""

from __future__ import annotations

from ofan_p4.compiler.backend.encode import Json, expression, field, hexstr, lvalue, source_info
from ofan_p4.compiler.backend.pipelines import Actions, Numbers, pipeline
from ofan_p4.compiler.backend.states import parse_states
from ofan_p4.compiler.backend.storage import aliases, storage
from ofan_p4.compiler.midend import ir
from ofan_p4.compiler.midend.flow import Object, Table, tables_of
from ofan_p4.compiler.midend.operands import bits_of
from ofan_p4.compiler.midend.switch import Checksum, Switch
from ofan_p4.compiler.semantics import types as ty
from ofan_p4.compiler.semantics.scope import fail
from ofan_p4.diagnostics import Span

VERSION = [2, 23]


def bmv2_json(switch: Switch, program_name: str) -> Json:
    """Return the JSON that simple_switch loads."""
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
        **storage(switch),
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
        "field_aliases": aliases(switch),
        "program": program_name,
        "__meta__": {"version": VERSION, "compiler": "ofan"},
    }


def _externs(switch: Switch) -> list[Json]:
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


# Lists


def _enums(switch: Switch) -> list[Json]:
    return [
        {"name": enum.name, "entries": [[member, enum.value(member)] for member in enum.members]}
        for enum in switch.program.enums
        # The others are numbers wherever the target sees them.
        if enum.underlying is None
    ]


def _field_lists(switch: Switch) -> list[Json]:
    """Return the lists of the user metadata that clones and the like keep; ids start at 1."""
    return [
        {
            "id": number,
            "name": f"field_list{index}" if index >= 0 else "empty",
            "elements": [lvalue(item) for item in items],
        }
        for number, (index, items) in enumerate(switch.field_lists.items(), start=1)
    ]


def _learn_lists(switch: Switch) -> list[Json]:
    return [
        {
            "id": number,
            "name": digest.name,
            "source_info": source_info(digest.span),
            "elements": [lvalue(item) for item in digest.fields if isinstance(item, ir.FieldRef)],
        }
        for number, digest in enumerate(switch.digests, start=1)
    ]


def _value_sets(switch: Switch) -> list[Json]:
    return [
        {"name": item.name, "id": number, "compressed_bitwidth": item.width, "max_size": item.size}
        for number, item in enumerate(switch.value_sets)
    ]


def _deparser(switch: Switch) -> Json:
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


def _checksums(switch: Switch) -> tuple[list[Json], list[Json]]:
    """Return the calculations of hashes, then those of checksums, and the checksums themselves."""
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


def _checksum(item: Checksum, calculation: str, number: int) -> Json:
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


def _objects(switch: Switch, *kinds: str) -> list[Object]:
    return [item for item in switch.objects if item.kind in kinds]


def _head(item: Object, number: int) -> Json:
    return {"name": item.name, "id": number, "source_info": source_info(item.source.span)}


def _registers(switch: Switch) -> list[Json]:
    arrays = []
    for number, item in enumerate(_objects(switch, "register")):
        assert isinstance(item.source.type, ty.Extern)
        element = bits_of(item.source.type.args[0])
        if not isinstance(element, ty.Bits) and element != ty.BOOL:
            fail("the target has registers of bit<> and int<> only", item.source.span)

        if item.args["size"] == 0:
            fail("a register needs at least one cell", item.source.span)

        arrays.append(
            {**_head(item, number), "size": item.args["size"], "bitwidth": ty.width_of(element)}
        )

    return arrays


def _bound_tables(switch: Switch) -> dict[str, Table]:
    """Return the table of every direct counter and meter; raises CompileError for two tables."""
    bound: dict[str, Table] = {}
    for table in tables_of((*switch.ingress, *switch.egress)):
        for item in (table.counters, table.meters):
            if item is not None and bound.setdefault(item.name, table) is not table:
                fail(f"'{item.name}' is attached to two tables", table.source.span)

    return bound


def _counters(switch: Switch) -> list[Json]:
    bound = _bound_tables(switch)
    arrays: list[Json] = []
    for item in _objects(switch, "counter", "direct_counter"):
        head = _head(item, len(arrays))
        if item.kind == "counter":
            arrays.append({**head, "size": item.args["size"], "is_direct": False})
        elif item.name in bound:
            arrays.append({**head, "is_direct": True, "binding": bound[item.name].name})

    return arrays


def _meters(switch: Switch) -> list[Json]:
    bound = _bound_tables(switch)
    arrays: list[Json] = []
    for item in _objects(switch, "meter", "direct_meter"):
        # Two rates, committed and peak (RFC 2698).
        head = {**_head(item, len(arrays)), "rate_count": 2, "type": item.args["type"]}
        if item.kind == "meter":
            arrays.append({**head, "is_direct": False, "size": item.args["size"]})
        elif item.name in bound:
            arrays.append({**head, **_direct_meter(item, bound[item.name], switch)})
        elif item.name in switch.meter_targets:
            fail(
                f"direct meter '{item.name}' is read, but no table has it as 'meters'",
                item.source.span,
            )

    return arrays


def _direct_meter(item: Object, table: Table, switch: Switch) -> Json:
    target = switch.meter_targets.get(item.name)
    if target is None:
        fail(f"direct meter '{item.name}' is never read", item.source.span)

    result = [target.header, target.name]
    return {"is_direct": True, "size": table.size, "binding": table.name, "result_target": result}
