"""Programs with a mistake marked by `§`, and the check that the error names its place."""

from __future__ import annotations

import pytest

from ofan_p4.compiler import CompileError, compile_source

HEAD = """#include <core.p4>
#include <v1model.p4>
header data_t { bit<8> a; bit<8> b; bit<16> c; }
header part_t { bit<4> x; bit<4> y; }
struct headers_t { data_t data; part_t[2] parts; }
struct meta_t { bit<8> m; bool flag; }
enum Colour { Red, Green }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.data); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
"""
TAIL = "V1Switch(P(), V(), I(), E(), V(), D()) main;\n"


def ingress(local: str, body: str) -> str:
    """A program with these declarations and statements in its ingress."""
    signature = "control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {"
    return f"{HEAD}{signature}\n{local}\napply {{\n{body}\n}} }}\n{TAIL}"


def statement(text: str) -> str:
    """Return a program with an ingress of these statements."""
    return ingress("", text)


def local(text: str, body: str = "") -> str:
    """Return a program with an ingress that declares `text` and does `body`."""
    return ingress(text, body)


def top(text: str) -> str:
    """The beginning of a program, and declarations after it."""
    return f"{HEAD}{text}\n"


def assert_error_at_mark(marked: str, message: str) -> None:
    """Compile a program without its mark: the error has the message, and the place of the mark."""
    with pytest.raises(CompileError) as caught:
        compile_source(marked.replace("§", ""), "case.p4")

    assert message in caught.value.message

    before = marked[: marked.index("§")]
    location = caught.value.location

    assert (location.file, location.line, location.column) == (
        "case.p4",
        before.count("\n") + 1,
        len(before) - before.rfind("\n"),
    )
