"""Damaged BMv2 JSON is one PipelineError or a program that runs; damaged packets never raise."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ofan_p4.softswitch.base.errors import PipelineError

SETTINGS = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
VALUES = [
    None,
    True,
    -1,
    0,
    5,
    1 << 70,
    "",
    "h",
    "0xzz",
    "__import__('os')",
    [],
    ["h", "a"],
    {},
    {"op": "+"},
    0.5,
]


def rich_program(p: Any) -> Any:
    """A little of everything that the loader reads."""
    p.header("h", a=8, b=4, c=4, d=16)
    p.header("v", length=8, data="*", max_length=9)
    p.stack("s", 2, x=8)
    p.root["register_arrays"] = [{"name": "r", "id": 0, "size": 4, "bitwidth": 8}]
    p.root["counter_arrays"] = [{"name": "c", "id": 0, "size": 4, "is_direct": False}]
    p.root["calculations"] = [
        {"name": "k", "id": 0, "algo": "crc16", "input": [p.field("h.a"), p.field("h.d")]}
    ]
    p.root["checksums"] = [
        {"name": "k", "id": 0, "target": ["h", "d"], "type": "generic", "calculation": "k"}
    ]
    varbit = {
        "op": "extract_VL",
        "parameters": [{"type": "regular", "value": "v"}, p.op("*", "h.b", 8)],
    }
    p.state(
        "start",
        [p.extract("h")],
        ["h.a", "h.c"],
        {"0x0101": "more", "0x0002&0x00ff": "stack", None: None},
    )
    p.state("more", [varbit])
    p.state(
        "stack",
        [p.extract("s", "stack")],
        [{"type": "lookahead", "value": [0, 8]}],
        {"0x07": "stack", None: None},
    )
    body = [
        p.call("_jump_if_zero", p.op("<", "h.a", 9), 3),
        p.call("register_read", "h.b", {"type": "register_array", "value": "r"}, "h.c"),
        p.call("count", {"type": "counter_array", "value": "c"}, "h.b"),
        p.call("assign", "h.d", p.op("?", 1, "h.d", cond=p.op("==", "h.a", p.argument(0)))),
        p.call("pop", {"type": "header_stack", "value": "s"}, 1),
        p.call(
            "modify_field_with_hash_based_offset",
            "h.d",
            0,
            {"type": "calculation", "value": "k"},
            16,
        ),
    ]
    act = p.action("act", body, number=8)
    key = {"h.a": "ternary", "h.d": "lpm", "h.c": "range"}
    match_key = [
        {"match_type": "ternary", "key": "0x01", "mask": "0x0f"},
        {"match_type": "lpm", "key": "0x0000", "prefix_length": 0},
        {"match_type": "range", "start": "0x00", "end": "0x0f"},
    ]
    entry = {
        "match_key": match_key,
        "action_entry": {"action_id": act, "action_data": ["0x3"]},
        "priority": 1,
    }
    p.table("t", key, [act], act, [7], entries=[entry])

    return p


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value inside."""
    children = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    )
    return [
        path,
        *(inner_path for key, child in children for inner_path in places(child, (*path, key))),
    ]


def replaced(node: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy with another value at a path."""
    if not path:
        return value
    copy = dict(node) if isinstance(node, dict) else list(node)
    copy[path[0]] = replaced(node[path[0]], path[1:], value)

    return copy


@pytest.mark.parametrize(
    "count", [80, pytest.param(1_000, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_damaged_json(new_program: Any, bench: Any, count: int) -> None:
    @settings(SETTINGS, max_examples=count)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        run_damaged(new_program, bench, data)

    check()


def run_damaged(new_program: Any, bench: Any, data: st.DataObject) -> None:
    root = rich_program(new_program()).root
    path = data.draw(st.sampled_from(places(root)))
    damaged = replaced(root, path, data.draw(st.sampled_from(VALUES)))
    try:
        run = bench(json.dumps(damaged).encode())
    except PipelineError as error:
        assert "\n" not in str(error)
    else:
        run.send(b"\x01\x21abcdefg")


COND = "actions 0 primitives 3 parameters 1 value cond value right value"
LOOKAHEAD = "parsers 0 parse_states 2 transition_key 0 value"


@pytest.mark.parametrize(
    ("key_path", "value", "message"),
    [
        (COND, -1, "the number of a parameter is -1"),
        (COND, True, "the number of a parameter is True"),
        (COND, 1, "the number of a parameter is 1, of 1"),
        (f"{LOOKAHEAD} 0", 0.5, "the offset of a lookahead is 0.5"),
        (f"{LOOKAHEAD} 0", -8, "the offset of a lookahead is -8"),
        (f"{LOOKAHEAD} 1", -1, "the width of a lookahead is -1"),
    ],
)
def test_a_position_that_python_would_bend_is_refused(
    new_program: Any, bench: Any, key_path: str, value: Any, message: str
) -> None:
    root = rich_program(new_program()).root
    path = tuple(int(key) if key.isdigit() else key for key in key_path.split())

    with pytest.raises(PipelineError, match=f"^corrupt BMv2 JSON: {message}$"):
        bench(json.dumps(replaced(root, path, value)).encode())


@pytest.mark.parametrize("number", [-1, True, 3])
@pytest.mark.parametrize("is_target", [True, False])
def test_a_field_that_a_header_does_not_have_is_refused(
    program: Any, bench: Any, is_target: bool, number: Any
) -> None:
    program.header("h", a=8, b=8)
    program.state("start", [program.extract("h")])
    field = {
        "type": "expression",
        "value": {"op": "access_field", "left": program.header_operand("h"), "right": number},
    }
    operands = (field, "h.b") if is_target else ("h.b", field)
    program.run("step", [program.call("assign", *operands)])

    with pytest.raises(PipelineError, match=f"^corrupt BMv2 JSON: a field is {number}"):
        bench(program)


@settings(SETTINGS, max_examples=60)
@given(frames=st.lists(st.binary(max_size=40), min_size=1, max_size=20))
def test_any_packet(new_program: Any, bench: Any, frames: list[bytes]) -> None:
    run = bench(rich_program(new_program()))
    for frame in frames:
        for start in (b"", b"\x01\x21ab", b"\x02\x02ab\x07"):
            run.send(start + frame)

    assert run.switch.counts.transmitted == 3 * len(frames)


def test_a_table_names_an_action_profile_that_exists(program: Any, bench: Any) -> None:
    program.state("start", [])
    act = program.action("act", [])
    program.table("t", {}, [act], act)
    program.root["pipelines"][0]["tables"][0]["action_profile"] = "nobody"

    with pytest.raises(PipelineError, match=r"^table 't': no action profile is called 'nobody'$"):
        bench(program)
