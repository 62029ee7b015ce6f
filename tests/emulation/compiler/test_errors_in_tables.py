"""Errors in tables, and where they are applied, name their exact place."""

from __future__ import annotations

import pytest

from tests.emulation.compiler.marked import assert_error_at_mark, local

TABLE = (
    "action go() {{}} action run(bit<8> x) {{}} "
    "table t {{ key = {{ hdr.data.a: exact; }} actions = {{ go; run; }} {} }}"
)

CASES = {
    "ranking without entries": (
        local('table t { actions = { NoAction; } largest_priority_wins = §"no"; }'),
        "'largest_priority_wins' must be bool",
    ),
    "table in a loop at run time": (
        local(TABLE.format(""), "for (bit<8> i = 0; i != hdr.data.a; i = i + 1) { §t.apply(); }"),
        "a table cannot be applied in an action or in a loop that is not unrolled",
    ),
    "unknown action": (
        local("table t { actions = { §nothing; } }"),
        "action 'nothing' is not declared",
    ),
    "action twice": (
        local("action a() {} table t { actions = { a; §a; } }"),
        "action 'a' is listed twice",
    ),
    "no actions": (local("table §t { key = { hdr.data.a: exact; } }"), "table t has no 'actions'"),
    "unknown match kind": (
        local("table t { key = { hdr.data.a: §fuzzy; } actions = { NoAction; } }"),
        "match kind 'fuzzy' is not declared",
    ),
    "two lpm keys": (
        local("table t { key = { hdr.data.a: lpm; §hdr.data.b: lpm; } actions = { NoAction; } }"),
        "a table can have one lpm key only",
    ),
    "key without name": (
        local("table t { key = { §hdr.data.a + 1: exact; } actions = { NoAction; } }"),
        'this key is an expression and needs an annotation @name("...")',
    ),
    "unknown property": (
        local(TABLE.format("§colour = 3;")),
        "table property 'colour' is not supported",
    ),
    "foreign default": (
        local("action other() {} " + TABLE.format("default_action = §other();")),
        "action 'other' is not in the table's list of actions",
    ),
    "default without data": (
        local(TABLE.format("default_action = §run();")),
        "the argument for 'x' is missing",
    ),
    "entry with too many keys": (
        local(TABLE.format("const entries = { §(1, 2): go(); }")),
        "the table has 1 keys, found 2",
    ),
    "mask in exact key": (
        local(TABLE.format("const entries = { §1 &&& 3: go(); }")),
        "a key of kind 'exact' cannot match this",
    ),
    "priorities of exact entries": (
        local(TABLE.format("§entries = { priority=1: 1: go(); }")),
        "entries of a table with exact and lpm keys only have no priorities",
    ),
    "table applied twice": (
        local(TABLE.format(""), "t.apply(); hdr.data.b = 1; §t.apply();"),
        "table 't' is applied more than once, which the target cannot do",
    ),
    "table applied in action": (
        local(TABLE.format("") + "action b() { §t.apply(); }"),
        "tables can be applied in the apply block of a control only",
    ),
    "unknown label": (
        local(TABLE.format(""), "switch (t.apply().action_run) { §stop: {} }"),
        "expected an action of table t or 'default'",
    ),
    "id of another kind": (
        local(
            "action a() {} @id(0x01000001) table §t { actions = { a; NoAction; } }", "t.apply();"
        ),
        "the @id of I.t has the wrong 8-bit prefix for a table",
    ),
}


@pytest.mark.parametrize(("marked", "message"), CASES.values(), ids=CASES)
def test_an_error_in_a_table(marked: str, message: str) -> None:
    assert_error_at_mark(marked, message)
