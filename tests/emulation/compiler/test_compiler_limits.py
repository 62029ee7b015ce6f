"""Deep programs compile; those that grow without bounds end soon, with an error in its place."""

from __future__ import annotations

import json
import resource
import time
from typing import Any

import pytest

from ofan_p4.compiler import CompileError, compile_source
from ofan_p4.softswitch.control.switch import Switch
from tests.emulation.compiler.fuzzing import CASES, INCLUDES

TYPES = """#include <core.p4>
#include <v1model.p4>
header data_t { bit<8> a; bit<8> b; bit<16> c; }
struct headers_t { data_t data; }
struct meta_t { bit<8> m; }
"""
PARSER = """
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.data); transition accept; }
}
"""
END = """
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


def program(body: str = "", top: str = "", local: str = "", parser: str = PARSER) -> str:
    signature = "control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {"
    return f"{TYPES}{top}{parser}{signature}\n{local}\napply {{\n{body}\n}} }}\n{END}"


def chain(parts: range, text: str) -> str:
    return "".join(text.format(i=i, before=i - 1) for i in parts)


DEEP = {
    "else if": (
        "if (hdr.data.c == 0) { hdr.data.b = 0; }"
        + chain(range(1, 150), " else if (hdr.data.c == {i}) {{ hdr.data.b = {i}; }}"),
        b"\x01\x63\x00\x63",
    ),
    "nested if": (
        "if (hdr.data.a == 1) { " * 100 + "hdr.data.b = 0x63;" + " }" * 100,
        b"\x01\x63\x00\x63",
    ),
    "operators": ("hdr.data.c = " + " + ".join(["hdr.data.c"] * 200) + ";", b"\x01\x02\x4d\x58"),
    "labels": (
        "switch (hdr.data.c) {" + chain(range(500), "{i}: {{ hdr.data.b = {i} & 0xff; }}\n") + "}",
        b"\x01\x63\x00\x63",
    ),
    "parentheses": (
        "hdr.data.b = " + "(" * 300 + "hdr.data.a" + ")" * 300 + ";",
        b"\x01\x01\0\x63",
    ),
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_programs_compile_and_run(name: str) -> None:
    body, expected = DEEP[name]
    source = compile_source(program(body), "deep.p4").json
    switch = Switch(1, lambda: 0, lambda low, _high: low, range(4))
    switch.load(json.dumps(source).encode())
    sent = [out for copy in switch.ingress(1, b"\x01\x02\0\x63") for out in switch.egress(copy)]

    assert [out.frame for out in sent] == [expected]


LARGE = "the program becomes too large when its calls and loops are inlined"
FIELDS = "this type has more than 65536 fields"
DOUBLE = chain(range(1, 40), "struct s{i} {{ s{before} a; s{before} b; }}\n")
FIRST = "struct s0 { bit<8> a; bit<8> b; }\n"
PARSE = "(packet_in packet, inout headers_t hdr)"

BOMBS: dict[str, tuple[dict[str, Any], str]] = {
    "structs": ({"top": FIRST + DOUBLE}, FIELDS),
    "headers": ({"top": FIRST + DOUBLE + "header h_t { s39 x; }"}, FIELDS),
    "stacks": ({"top": "struct s0 { data_t[4096] a; data_t[4096] b; }\n" + DOUBLE}, FIELDS),
    "generics": (
        {
            "top": "struct p0<T> { T a; }\n"
            + chain(range(1, 40), "struct p{i}<T> {{ p{before}<tuple<T, T>> a; }}\n"),
            "local": "p39<bit<8>> x;",
        },
        FIELDS,
    ),
    "controls": (
        {
            "top": "control C0(inout headers_t hdr) { apply { hdr.data.a = 1; } }\n"
            + chain(
                range(1, 30),
                "control C{i}(inout headers_t hdr) {{ C{before}() a; C{before}() b;"
                " apply {{ a.apply(hdr); b.apply(hdr); }} }}\n",
            ),
            "local": "C29() c;",
            "body": "c.apply(hdr);",
        },
        LARGE,
    ),
    "parsers": (
        {
            "parser": f"parser Q0{PARSE} {{ state start {{ transition accept; }} }}\n"
            + chain(
                range(1, 30),
                f"parser Q{{i}}{PARSE} {{{{ Q{{before}}() a; state start {{{{"
                " a.apply(packet, hdr); a.apply(packet, hdr); transition accept; }} }}\n",
            )
            + PARSER.replace(
                "{\n    state start {", "{ Q29() q;\n state start { q.apply(packet, hdr);"
            ),
        },
        LARGE,
    ),
    "functions": (
        {
            "top": "bit<8> f0(in bit<8> x) { return x + 1; }\n"
            + chain(
                range(1, 40),
                "bit<8> f{i}(in bit<8> x) {{ return f{before}(x) ^ f{before}(x + 1); }}\n",
            ),
            "body": "hdr.data.a = f39(hdr.data.a);",
        },
        LARGE,
    ),
    "loops": (
        {
            "body": chain(range(6), "for (bit<16> i{i} = 0; i{i} < 1000; i{i} = i{i} + 1) {{ ")
            + "hdr.data.a = hdr.data.a + 1;"
            + "}" * 6
        },
        LARGE,
    ),
    "loops over ranges": (
        {
            "body": chain(range(6), "for (bit<16> i{i} in 16w0..16w999) {{ ")
            + "hdr.data.a = (bit<8>) i0;"
            + "}" * 6
        },
        LARGE,
    ),
    "concatenation": (
        {"local": "bit<8> x = 1;", "body": "hdr.data.a = (" + " ++ ".join(["x"] * 300) + ")[7:0];"},
        "this number has more than 2048 bits",
    ),
    "strings": (
        {
            "top": 'const string s0 = "abcdefgh";\n'
            + chain(range(1, 40), "const string s{i} = s{before} ++ s{before};\n")
        },
        "this string has more than 65536 characters",
    ),
    "numbers": (
        {
            "top": "const int c0 = 3;\n"
            + chain(range(1, 40), "const int c{i} = c{before} * c{before};\n")
        },
        "this number is too large",
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_programs_without_bounds_end_with_an_error(name: str) -> None:
    parts, message = BOMBS[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(CompileError) as caught:
        compile_source(program(**parts), "bomb.p4")

    assert caught.value.message == message
    assert caught.value.location.line > 1
    # 1 GB, which a build server gives without complaint.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20


LARGE_STACK = """
#define HEADERS data_t data; byte_t[300] bytes;
#define OWN_PARSER
header byte_t { bit<8> value; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        packet.extract(hdr.bytes.next);
        transition accept;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (hdr.bytes[hdr.data.a].isValid()) { hdr.data.b = 1; }
        hdr.bytes[hdr.data.a].value = 0xee;
        if (hdr.data.c == 1) { hdr.bytes[(int<8>) hdr.data.a].setInvalid(); }
        if (hdr.data.c == 2) { bit<8> unused = hdr.bytes[hdr.data.a].value; }
        if (hdr.data.c == 3) { hdr.bytes[hdr.data.a] = hdr.bytes[1]; }
    }
}

#include "include/end.p4"
"""


def loaded(text: str) -> Switch:
    """Return a switch that runs a program with a large stack."""
    compiled = compile_source(text, str(CASES / "large_stack.p4"), INCLUDES)
    switch = Switch(1, lambda: 0, lambda low, _high: low, range(4))
    switch.load(json.dumps(compiled.json).encode())

    return switch


@pytest.mark.slow
def test_machine_code_of_large_programs_takes_no_square_of_time() -> None:
    """Each computed index is a case for every header of its stack: 40,000 lines in all."""
    begun = time.process_time()
    switch = loaded(LARGE_STACK)

    # Twice four seconds; the square takes minutes.
    assert time.process_time() - begun < 60
    assert switch.pipeline is not None and switch.pipeline.functions is not None


@pytest.mark.slow
def test_what_would_take_a_compiler_minutes_runs_in_python_and_says_so() -> None:
    switch = loaded(LARGE_STACK.replace("[300]", "[2047]"))

    assert switch.pipeline is not None and switch.pipeline.functions is None
    assert "LINES: a program of more than 60,000 lines" in switch.pipeline.reason

    # Header 0 of the stack, which is there, takes 0xee.
    (waiting,) = switch.ingress(0, bytes([0, 0, 0, 0, 0, 0, 0, 0, 7]))
    (sent,) = switch.egress(waiting)

    assert sent.frame[-1] == 0xEE
