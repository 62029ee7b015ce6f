"""Programs with scripts, made for a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = """#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> to; bit<48> from; bit<16> kind; }
header note_t { bit<4> high; bit<4> low; bit<16> sum; }
struct headers_t { ethernet_t ethernet; note_t[2] notes; }
struct meta_t {}
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.kind) { 0x1234: note; default: accept; }
    }
    state note {
        packet.extract(hdr.notes.next);
        transition select(hdr.notes.last.high) { 0: accept; default: note; }
    }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    counter(2, CounterType.packets_and_bytes) seen;
    register<bit<8>>(2) cells;
    action to(bit<9> port) { sm.egress_spec = port; }
    table ports { key = { sm.ingress_port: exact; } actions = { to; NoAction; } \
default_action = to(511); size = 4; }
    apply { ports.apply(); seen.count(0); BODY }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


@pytest.fixture
def case(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """Return a writer of NAME.p4 and NAME.stf; `body` is a statement of the program."""

    def write(script: str, name: str = "prog", body: str = "") -> tuple[Path, Path]:
        program = tmp_path / f"{name}.p4"
        stf = tmp_path / f"{name}.stf"
        program.write_text(PROGRAM.replace("BODY", body))
        stf.write_text(script)

        return program, stf

    return write
