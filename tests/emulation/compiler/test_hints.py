"""Hints at probable mistakes: misspelt words with the word meant, limits the wrong way round."""

from __future__ import annotations

from pathlib import Path

import pytest

from ofan_p4.compiler import CompileError, compile_file, compile_source

PROGRAM = """#include <core.p4>
#include <v1model.p4>
header data_t { bit<8> a; bit<8> b; }
struct headers_t { data_t data; }
struct metadata_t { bit<12> spare; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {
    state start { packet.extract(hdr.data); transition accept; }
}
control None(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Schedule(inout headers_t hdr) { apply { hdr.data.a = 1; } }
control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {
    Schedule() schedule;
    action drop() { mark_to_drop(s); }
    table routes { key = { hdr.data.a: exact; } actions = { drop; } default_action = drop(); }
    apply { schedule.apply(hdr); routes.apply(); }
}
control Out(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), None(), In(), Out(), None(), Deparse()) main;
"""


@pytest.mark.parametrize(
    ("right", "wrong", "hint"),
    [
        ("    Schedule() schedule", "    Schedle() schedule", "did you mean 'Schedule'"),
        ("schedule.apply", "schedule.aply", "did you mean 'apply'"),
        ("control Out", "contrl Out", "is 'contrl' meant to be 'control'"),
        ("apply { schedule", "aply { schedule", "is 'aply' meant to be 'apply'"),
        ("table routes", "tabel routes", "is 'tabel' meant to be 'table'"),
        ("actions =", "actoins =", "is 'actoins' meant to be 'actions'"),
        ("transition accept", "transtion accept", "did you mean 'transition'"),
        ("transition accept", "transition acept", "did you mean 'accept'"),
        ("hdr.data.a =", "hdr.daat.a =", "did you mean 'data'"),
        ("key = { hdr.data.a: exact", "key = { hdr.data.a: exat", "did you mean 'exact'"),
        ("actions = { drop", "actions = { dropp", "did you mean 'drop'"),
        ("mark_to_drop(s)", "mark_to_dorp(s)", "did you mean 'mark_to_drop'"),
        ("packet.extract", "packet.extrat", "did you mean 'extract'"),
        (
            "in headers_t hdr) { apply { packet.emit",
            "in header_t hdr) { apply { packet.emit",
            "headers_t",
        ),
    ],
)
def test_misspelt_words_are_told_with_what_was_meant(right: str, wrong: str, hint: str) -> None:
    assert PROGRAM.count(right) == 1
    with pytest.raises(CompileError, match=hint):
        compile_source(PROGRAM.replace(right, wrong))


def test_words_that_nothing_is_like_get_no_hint() -> None:
    with pytest.raises(CompileError) as caught:
        compile_source(PROGRAM.replace("    Schedule() schedule", "    Unlike() schedule"))

    assert caught.value.message == "unknown type 'Unlike'"


@pytest.mark.parametrize(("limits", "warnings"), [("9, 2", 1), ("2, 9", 0), ("5, 5", 0)])
def test_limits_of_random_the_wrong_way_round_are_warned_of(limits: str, warnings: int) -> None:
    text = PROGRAM.replace("mark_to_drop(s);", f"random(hdr.data.a, {limits});")
    told = compile_source(text).warnings

    assert len(told) == warnings
    assert all(warning.kind == "empty_range" for warning in told)
    assert all("from 9 to 2" in warning.message for warning in told)


@pytest.mark.parametrize(("key", "warnings"), [("meta.spare", 1), ("hdr.data.a", 0)])
def test_lpm_keys_that_bmv2_takes_for_others_are_warned_of(key: str, warnings: int) -> None:
    told = compile_source(PROGRAM.replace("hdr.data.a: exact", f"{key}: lpm")).warnings

    assert [warning.kind for warning in told] == ["bmv2_lpm"] * warnings
    assert all("'meta.spare' has 12 bits" in warning.message for warning in told)


def test_a_byte_order_mark_is_no_part_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "types.p4").write_text("\ufeffconst bit<8> ONE = 1;\n", encoding="utf-8")
    path = tmp_path / "program.p4"
    included = PROGRAM.replace("header data_t", '#include "types.p4"\nheader data_t')
    path.write_text(f"\ufeff{included}", encoding="utf-8")

    assert compile_file(path).json == compile_source(included, str(path), [tmp_path]).json
