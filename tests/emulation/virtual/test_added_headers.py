"""Bytes of headers that programs may put into packets, counted by hand."""

import json

import pytest

import p4src
from emulation.virtual.added_headers import added_bytes
from ofan_p4.compiler import compile_file, compile_source
from ofan_p4.softswitch.codegen.loading import load

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header label_t { bit<32> number; }
struct headers_t { label_t first; label_t second; label_t[2] more; }
struct metadata_t { }
parser Parse(packet_in packet, out headers_t headers, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(headers.first);
        packet.extract(headers.second);
        packet.extract(headers.more.next);
        transition accept;
    }
}
control Check(inout headers_t headers, inout metadata_t meta) { apply { } }
control Forward(inout headers_t headers, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action change() { CHANGE }
    table always { actions = { change; } default_action = change(); }
    apply { always.apply(); }
}
control Leave(inout headers_t headers, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) { apply { } }
control Deparse(packet_out packet, in headers_t headers) { apply { packet.emit(headers); } }
V1Switch(Parse(), Check(), Forward(), Leave(), Check(), Deparse()) main;
"""
CHANGES = {
    "headers.first.setInvalid();": 0,
    "headers.first.setValid();": 4,
    "headers.first.setValid(); headers.second.setValid();": 8,
    "headers.first.setValid(); headers.first.setInvalid(); headers.first.setValid();": 4,
    "headers.first = headers.second;": 4,
    # Moved, it makes no packet longer.
    "headers.first = headers.second; headers.second.setInvalid();": 0,
    "headers.more.push_front(1);": None,
    "headers.more[1].setValid();": 4,
}


@pytest.mark.parametrize(("change", "size"), CHANGES.items(), ids=str)
def test_what_a_program_adds(change: str, size: int | None) -> None:
    program = compile_source(PROGRAM.replace("CHANGE", change), "labels.p4")

    assert added_bytes(load(json.dumps(program.json).encode())) == size


@pytest.mark.parametrize("name", p4src.programs())
def test_ours_add_what_the_controller_gets(name: str) -> None:
    program = compile_file(p4src.path(name), [p4src.INCLUDE])

    # The port of a packet-in, in two bytes.
    assert added_bytes(load(json.dumps(program.json).encode())) == 2
