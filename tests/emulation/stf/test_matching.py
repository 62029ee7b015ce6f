"""Matches as scripts write them, for every kind of key."""

from __future__ import annotations

import pytest

from ofan_p4.softswitch.codegen.program import KeyField
from ofan_p4.stf.matching import MatchError, match_of


@pytest.mark.parametrize(
    ("kind", "text", "pair"),
    [
        ("exact", "0x1234", (0x1234, 0)),
        ("exact", None, (0, 0)),
        ("lpm", "0x1200/8", (0x1200, 8)),
        ("lpm", "0x12**", (0x1200, 8)),
        ("lpm", "7", (7, 16)),
        ("lpm", None, (0, 0)),
        ("ternary", "0x1*3*", (0x1030, 0xF0F0)),
        ("ternary", "0b1*", (2, 2)),
        ("ternary", "0x12", (0x12, 0xFF)),
        ("ternary", "18", (0x12, 0xFFFF)),
        ("ternary", "0xffff&&&0x00f0", (0xF0, 0xF0)),
        ("ternary", None, (0, 0)),
        ("optional", "0x1234", (0x1234, 0xFFFF)),
        ("range", "1->0x10", (1, 16)),
        ("range", "5", (5, 5)),
        ("range", None, (0, 0xFFFF)),
    ],
)
def test_a_match_becomes_the_pair_that_the_table_keeps(
    kind: str, text: str | None, pair: tuple[int, int]
) -> None:
    assert match_of(KeyField("key", kind, ["h", "f"], 16, None), text) == pair


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("exact", "0x12345"),
        ("exact", "0x1*"),
        ("lpm", "1/17"),
        ("ternary", "70000"),
        ("range", "x"),
    ],
)
def test_what_does_not_fit_the_key_is_refused(kind: str, text: str) -> None:
    with pytest.raises(MatchError, match=r"^key: "):
        match_of(KeyField("key", kind, ["h", "f"], 16, None), text)
