"""Read BMv2 JSON into a `Program`.

Names of the file are resolved to indices here, once; a name that does not resolve, a missing key
and a wrong type are a PipelineError with the place. The format is described in
`docs/JSON_format.md` of the behavioral-model project.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from ofan_p4.softswitch.base.errors import PipelineError, corruption_is_reported
from ofan_p4.softswitch.codegen.program import (
    STRAYS,
    VALID,
    Action,
    ActionCall,
    Array,
    Calculation,
    Checksum,
    Conditional,
    Control,
    Field,
    FieldList,
    Header,
    Json,
    KeyField,
    Node,
    Parser,
    ParseState,
    Profile,
    Program,
    Stack,
    TableSpec,
    Union,
    ValueSet,
    fragment_of,
    hex_int,
    where_of,
)

T = TypeVar("T")
K = TypeVar("K")
# An array is allocated as declared: a damaged size must not take all memory.
MAX_CELLS = 1 << 22


def load(source: bytes) -> Program:
    """Parse and resolve BMv2 JSON."""
    try:
        root = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise PipelineError(f"not a BMv2 JSON: {error}") from None

    if not isinstance(root, dict) or "pipelines" not in root or "header_types" not in root:
        raise PipelineError("not a BMv2 JSON: no 'pipelines' and 'header_types' at the top level")

    with corruption_is_reported():
        return _program(root)


def _program(root: Json) -> Program:
    headers = _headers(root)
    header_ids = _unique(((header.name, header.id) for header in headers), "headers")
    # Ids of the file need not be dense; everything behind this module counts from 0.
    by_file_id = {_int(item, "id"): index for index, item in enumerate(root["headers"])}
    unions = _unions(root, by_file_id)
    union_by_file_id = {
        _int(item, "id"): index for index, item in enumerate(root.get("header_unions", ()))
    }
    actions = _unique(
        ((_int(item, "id"), _action(item)) for item in root.get("actions", ())), "actions"
    )
    resolve = _FieldResolver(headers, header_ids)
    controls = {item["name"]: _control(item, actions, resolve) for item in root["pipelines"]}

    for name in ("ingress", "egress"):
        # v1model has these two; BMv2's simple_switch runs no others.
        if name not in controls:
            raise PipelineError(f"corrupt BMv2 JSON: no pipeline is called {name!r}")

    return Program(
        headers=headers,
        header_ids=header_ids,
        stacks=_uniform(
            _stacks(root.get("header_stacks", ()), "header_ids", by_file_id, of_unions=False),
            headers,
        ),
        unions=unions,
        union_ids={union.name: union.id for union in unions},
        union_stacks=_stacks(
            root.get("header_union_stacks", ()),
            "header_union_ids",
            union_by_file_id,
            of_unions=True,
        ),
        errors={_str(pair[0]): int(pair[1]) for pair in root.get("errors", ())},
        parser=_parser(_single(root, "parsers")),
        deparse_order=tuple(header_ids[name] for name in _single(root, "deparsers")["order"]),
        actions=actions,
        ingress=controls["ingress"],
        egress=controls["egress"],
        calculations={item["name"]: _calculation(item) for item in root.get("calculations", ())},
        checksums=tuple(_checksum(item, resolve) for item in root.get("checksums", ())),
        registers=tuple(
            _array(item, i, resolve) for i, item in enumerate(root.get("register_arrays", ()))
        ),
        counters=_counters(root, resolve),
        meters=tuple(
            _array(item, i, resolve) for i, item in enumerate(root.get("meter_arrays", ()))
        ),
        value_sets=tuple(
            ValueSet(i, _str(item["name"]), int(item.get("compressed_bitwidth", 0)))
            for i, item in enumerate(root.get("parse_vsets", ()))
        ),
        field_lists=_field_lists(root.get("field_lists", ())),
        learn_lists=_field_lists(root.get("learn_lists", ())),
        aliases={
            _str(name): (_str(target[0]), _str(target[1]))
            for name, target in root.get("field_aliases", ())
        },
    )


def _counters(root: Json, resolve: _FieldResolver) -> tuple[Array, ...]:
    """Return the program's counters, and behind them ours."""
    counters = [_array(item, i, resolve) for i, item in enumerate(root.get("counter_arrays", ()))]
    registers, meters = (len(root.get(f"{kind}_arrays", ())) for kind in ("register", "meter"))
    cells = 2 * registers + len(counters) + meters
    return (*counters, Array(len(counters), STRAYS, size=cells))


class _FieldResolver:
    """Finds a field while the program is still being built."""

    def __init__(self, headers: tuple[Header, ...], ids: Mapping[str, int]) -> None:
        self._headers = headers
        self._ids = ids

    def __call__(self, target: Json) -> Field:
        header, name = target
        for field in self._headers[self._ids[header]].fields:
            if field.name == name:
                return field

        raise PipelineError(f"header {header!r} has no field {name!r}")

    def bits(self, target: Json) -> int:
        """Return the width of a key's target, which may be the validity of a header."""
        # The old form names the header alone.
        if isinstance(target, str) or target[1] == VALID:
            return 1

        return self(target).bits


def _headers(root: Json) -> tuple[Header, ...]:
    types = {item["name"]: item for item in root["header_types"]}
    return tuple(
        _header(index, item, types[item["header_type"]])
        for index, item in enumerate(root["headers"])
    )


def _header(index: int, item: Json, kind: Json) -> Header:
    fields = tuple(_field(index, i, spec) for i, spec in enumerate(kind["fields"]))
    name = _str(item["name"])
    is_metadata = bool(item.get("metadata", False))

    # Metadata never becomes bytes, headers are made of nothing else.
    if not is_metadata and sum(field.bits for field in fields) % 8:
        raise PipelineError(f"header {name!r} is not a whole number of bytes long")

    # Only a header with a varbit has a maximum, and `limit` is the varbit's part of it.
    max_bytes = int(kind.get("max_length") or 0)
    limit = max(0, max_bytes - sum(field.bits for field in fields) // 8)
    return Header(
        id=index,
        name=name,
        type_name=_str(kind["name"]),
        is_metadata=is_metadata,
        fields=tuple(replace(field, most=limit) if field.is_varbit else field for field in fields),
        max_bytes=max_bytes,
    )


def _field(header: int, index: int, spec: Json) -> Field:
    name = _str(spec[0])
    width = spec[1]
    if width == "*":
        return Field(header, index, name, 0, is_signed=False, is_varbit=True)
    # Masks of this width stand in generated code: a damaged width must not take all memory.
    if not isinstance(width, int) or not 0 <= width <= 1 << 16:
        raise PipelineError(f"field {name!r} has an impossible width: {width!r}")

    return Field(
        header, index, name, width, is_signed=len(spec) > 2 and bool(spec[2]), is_varbit=False
    )


def _unions(root: Json, headers: Mapping[int, int]) -> tuple[Union, ...]:
    # Members are named by the union's type, and their headers by its instance.
    types = {item["name"]: item for item in root.get("header_union_types", ())}
    return tuple(
        Union(
            index,
            _str(item["name"]),
            tuple(headers[i] for i in item["header_ids"]),
            tuple(_str(member[0]) for member in types[item["union_type"]]["headers"]),
        )
        for index, item in enumerate(root.get("header_unions", ()))
    )


def _stacks(items: Json, key: str, ids: Mapping[int, int], of_unions: bool) -> dict[str, Stack]:
    return {
        item["name"]: Stack(index, _str(item["name"]), tuple(ids[i] for i in item[key]), of_unions)
        for index, item in enumerate(items)
    }


def _uniform(stacks: dict[str, Stack], headers: Sequence[Header]) -> dict[str, Stack]:
    """Refuse stacks with headers of several types."""
    for stack in stacks.values():
        # Elements are copied into one another and extracted by the same arm.
        if len({headers[element].type_name for element in stack.elements}) > 1:
            raise PipelineError(f"the headers of stack {stack.name!r} are not all of one type")

    return stacks


def _parser(item: Json) -> Parser:
    states = {}
    for state in item["parse_states"]:
        states[_str(state["name"])] = ParseState(
            _str(state["name"]),
            ops=tuple(state.get("parser_ops", ())),
            key=tuple(state.get("transition_key", ())),
            transitions=tuple(state.get("transitions", ())),
            where=where_of(state),
        )

    start = _str(item["init_state"])
    # Checked here, so that the generator can trust every name.
    named = {
        transition.get("next_state")
        for state in states.values()
        for transition in state.transitions
    }

    for name in {start, *named} - {None}:
        if name not in states:
            raise PipelineError(f"the parser has no state {name!r}")

    return Parser(start, states)


def _action(item: Json) -> Action:
    data = item.get("runtime_data", ())
    return Action(
        _int(item, "id"),
        name=_str(item["name"]),
        parameter_names=tuple(_str(parameter["name"]) for parameter in data),
        parameter_bits=tuple(_int(parameter, "bitwidth") for parameter in data),
        primitives=tuple(item.get("primitives", ())),
        where=where_of(item),
    )


def _control(item: Json, actions: Mapping[int, Action], resolve: _FieldResolver) -> Control:
    nodes: dict[str, Node] = {}
    for table in item.get("tables", ()):
        nodes[table["name"]] = _table(table, actions, resolve)

    for branch in item.get("conditionals", ()):
        nodes[branch["name"]] = Conditional(
            _str(branch["name"]),
            expression=branch["expression"],
            on_true=branch.get("true_next"),
            on_false=branch.get("false_next"),
            where=where_of(branch),
            text=fragment_of(branch),
        )

    for call in item.get("action_calls", ()):
        nodes[call["name"]] = ActionCall(
            _str(call["name"]), actions[call["action_id"]].id, call.get("next_node")
        )

    profiles = tuple(
        _profile(i, profile) for i, profile in enumerate(item.get("action_profiles", ()))
    )
    return Control(_str(item["name"]), item.get("init_table"), nodes, profiles)


def _profile(index: int, item: Json) -> Profile:
    selector = item.get("selector")
    return Profile(
        index,
        name=_str(item["name"]),
        size=int(item.get("max_size", 0)),
        algorithm=_str(selector["algo"]) if selector else None,
        inputs=tuple(selector["input"]) if selector else (),
    )


def _table(item: Json, actions: Mapping[int, Action], resolve: _FieldResolver) -> TableSpec:
    ids = (
        tuple(item["action_ids"])
        if "action_ids" in item
        else _ids_by_name(item["actions"], actions)
    )

    names = {actions[i].name: i for i in ids}
    following = item.get("next_tables") or {}
    # `if (table.apply().hit)` branches on the outcome, `switch` on the action, never both.
    splits = "__HIT__" in following or "__MISS__" in following
    default = item.get("default_entry") or {}

    return TableSpec(
        id=_int(item, "id"),
        name=_str(item["name"]),
        profile=item.get("action_profile"),
        size=int(item.get("max_size", 1024)),
        with_counters=bool(item.get("with_counters", False)),
        supports_timeout=bool(item.get("support_timeout", False)),
        direct_meter=item.get("direct_meters"),
        key=tuple(_key_field(key, resolve) for key in item.get("key", ())),
        actions=ids,
        next_by_action={}
        if splits
        else {names[name]: node for name, node in following.items() if name in names},
        next_hit=following.get("__HIT__", item.get("base_default_next")),
        next_miss=following.get("__MISS__", item.get("base_default_next")),
        splits_on_hit=splits,
        default_action=actions[default["action_id"]].id if "action_id" in default else None,
        default_data=tuple(
            hex_int(value, f"table {item['name']}") for value in default.get("action_data", ())
        ),
        is_default_const=bool(
            default.get("action_const", False) or default.get("action_entry_const", False)
        ),
        entries=tuple(item.get("entries", ())),
        where=where_of(item),
    )


def _ids_by_name(names: Sequence[str], actions: Mapping[int, Action]) -> tuple[int, ...]:
    by_name = {action.name: action.id for action in actions.values()}
    return tuple(by_name[name] for name in names)


def _key_field(item: Json, resolve: _FieldResolver) -> KeyField:
    target = item["target"]
    kind = _str(item["match_type"])
    if kind not in {"exact", "lpm", "ternary", "range", "optional", "valid"}:
        raise PipelineError(f"unknown match kind {kind!r}")

    # Without a name of its own a key is called as its field.
    default_name = target if isinstance(target, str) else ".".join(target)
    mask = item.get("mask")
    return KeyField(
        name=_str(item.get("name") or default_name),
        kind="exact" if kind == "valid" else kind,
        target=[target, VALID] if isinstance(target, str) else target,
        bits=resolve.bits(target),
        mask=None if mask is None else hex_int(mask, "key mask"),
    )


def _calculation(item: Json) -> Calculation:
    return Calculation(_str(item["name"]), _str(item["algo"]), tuple(item["input"]))


def _checksum(item: Json, resolve: _FieldResolver) -> Checksum:
    return Checksum(
        target=resolve(item["target"]),
        calculation=_str(item["calculation"]),
        condition=item.get("if_cond"),
        verify=bool(item.get("verify", True)),
        update=bool(item.get("update", True)),
        where=where_of(item),
    )


def _array(item: Json, index: int, resolve: _FieldResolver) -> Array:
    size = int(item.get("size") or 0)
    if not 0 <= size <= MAX_CELLS:
        raise PipelineError(f"{item['name']}: an array of {size} cells is too large")

    # Where a direct meter writes its colour.
    result = item.get("result_target")
    return Array(
        id=index,
        name=_str(item["name"]),
        size=size,
        bits=int(item.get("bitwidth", 0)),
        is_direct=bool(item.get("is_direct", False)),
        kind=_str(item.get("type", "")),
        result=resolve(result) if result else None,
    )


def _field_lists(items: Json) -> dict[int, FieldList]:
    return {
        _int(item, "id"): FieldList(_int(item, "id"), _str(item["name"]), tuple(item["elements"]))
        for item in items
    }


def _unique(pairs: Iterable[tuple[K, T]], noun: str) -> dict[K, T]:
    listed = list(pairs)
    unique = dict(listed)
    # A dict would quietly keep the last of two.
    if len(unique) < len(listed):
        raise PipelineError(f"corrupt BMv2 JSON: two {noun} have the same id or name")

    return unique


def _single(root: Json, key: str) -> Json:
    items = root.get(key) or []
    if len(items) != 1:
        raise PipelineError(
            f"corrupt BMv2 JSON: expected exactly one of {key!r}, found {len(items)}"
        )

    return items[0]


def _int(item: Json, key: str) -> int:
    number = _checked(item[key], int, key)
    # JSON's true is an int to Python.
    if isinstance(number, bool) or number < 0:
        raise PipelineError(f"corrupt BMv2 JSON: {key} is {number!r}")

    return number


def _str(value: Json) -> str:
    return _checked(value, str, "name")


def _checked(value: Json, kind: type[T], noun: str) -> T:
    if not isinstance(value, kind):
        raise PipelineError(f"corrupt BMv2 JSON: {noun} is {value!r}")

    return value
