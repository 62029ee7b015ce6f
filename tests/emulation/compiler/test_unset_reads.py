"""A variable that is read before anything has written to it is warned of, with its place."""

import pytest

import p4src
from ofan_p4.compiler import compile_file, compile_source

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
struct h {{ }}
struct m {{ bit<16> x; }}
parser P(packet_in p, out h hdr, inout m meta, inout standard_metadata_t s) {{
    state start {{ transition accept; }}
}}
control V(inout h hdr, inout m meta) {{ apply {{ }} }}
control Sets(out bit<16> x) {{ apply {{ x = 1; }} }}
control I(inout h hdr, inout m meta, inout standard_metadata_t s) {{
    Sets() sets;
    register<bit<16>>(4) kept;
    bit<16> slot;
    bit<16> other;
    action write() {{ slot = 1; }}
    action read() {{ meta.x = slot; }}
    table either {{ actions = {{ write; read; }} default_action = read(); }}
    apply {{ {body} }}
}}
control E(inout h hdr, inout m meta, inout standard_metadata_t s) {{ apply {{ }} }}
control D(packet_out p, in h hdr) {{ apply {{ }} }}
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


def warned(body: str) -> list[str]:
    program = compile_source(PROGRAM.format(body=body))
    return [warning.message for warning in program.warnings]


SLOT = ["'slot' is read before anything is written to it"]


@pytest.mark.parametrize(
    "body",
    [
        "slot = slot + 1;",
        "meta.x = slot;",
        "slot += 1;",
        "kept.write(0, slot);",
        "if (slot == 0) { slot = 1; }",
        "meta.x = meta.x == 0 ? slot : 1;",
        "read();",
        "read(); write();",
        "switch (slot) { 1: { } default: { } }",
        "bit<16> inner = slot; slot = inner;",
        "for (bit<16> i = 0; i < 2; i = i + 1) { meta.x = slot; slot = i; }",
        "meta.x = slot; meta.x = slot + 1;",
    ],
)
def test_what_nothing_has_written_is_warned_of_once(body: str) -> None:
    assert warned(body) == SLOT


@pytest.mark.parametrize(
    "body",
    [
        "slot = 1; slot = slot + 1;",
        "kept.read(slot, 0); meta.x = slot;",
        "sets.apply(slot); meta.x = slot;",
        "write(); meta.x = slot;",
        "if (meta.x == 1) { slot = 1; } meta.x = slot;",
        "either.apply(); meta.x = slot;",
        "random(slot, 0, 3); meta.x = slot;",
        "slot[7:0] = 1; meta.x = slot;",
        "bit<16> slot = 1; meta.x = slot;",
        "for (bit<16> i in 16w0..16w2) { meta.x = i; }",
        "other = 1; other += 1;",
        "other = 2;",
    ],
)
def test_what_may_have_been_written_is_not(body: str) -> None:
    assert warned(body) == []


@pytest.mark.parametrize("name", p4src.programs())
def test_our_programs_are_without_warnings(name: str) -> None:
    assert compile_file(p4src.path(name), (p4src.INCLUDE, p4src.FOLDER)).warnings == ()


def test_the_place_is_that_of_the_read() -> None:
    (warning,) = compile_source(PROGRAM.format(body="slot =\n slot + 1;")).warnings
    assert str(warning).splitlines()[1].startswith(" slot + 1;")
    assert warning.kind == "uninitialized_use"
