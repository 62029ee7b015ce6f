"""Longest prefixes on BMv2, where it is installed: whole bytes are right, others are its fault."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ofan_p4.compiler import compile_source
from ofan_p4.stf.bench import Bench
from ofan_p4.stf.script import parse_script
from tests.emulation.compiler.bmv2_bench import SWITCH, forwarded

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.skipif(shutil.which(SWITCH) is None, reason=f"{SWITCH} is not on the PATH"),
]
FIRST_THRIFT_PORT = 20_900
OUT = 2
VALUE = 0xA5A5
PROGRAM = """#include <core.p4>
#include <v1model.p4>
header data_t {{ bit<{width}> key; bit<{rest}> rest; bit<8> mark; }}
struct headers_t {{ data_t data; }}
struct metadata_t {{ }}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {{
    state start {{ packet.extract(hdr.data); transition accept; }}
}}
control None(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t s) {{
    action mark(bit<8> value) {{ hdr.data.mark = value; }}
    table prefixes {{
        key = {{ hdr.data.key: lpm; }}
        actions = {{ mark; }}
        const entries = {{ {entries} }}
        default_action = mark(99);
    }}
    apply {{ s.egress_spec = {out}; prefixes.apply(); }}
}}
control Out(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {{ apply {{ }} }}
control Deparse(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}
V1Switch(P(), None(), In(), Out(), None(), Deparse()) main;
"""


def program_of(width: int) -> dict[str, Any]:
    entries = ""
    for length in (width, width - 1, width // 2, 2, 0):
        mask = (1 << width) - (1 << width - length)
        value = VALUE >> 16 - width & mask
        entries += f"{width}w{value} &&& {width}w{mask} : mark({length});\n"

    text = PROGRAM.format(width=width, rest=-width % 8 or 8, entries=entries, out=OUT)
    return compile_source(text).json


def marks(frames: list[bytes]) -> list[int]:
    return [frame[-1] for frame in frames]


@pytest.mark.parametrize(("width", "is_right"), [(8, True), (16, True), (12, False), (9, False)])
def test_prefixes_are_those_of_our_switch(width: int, is_right: bool, tmp_path: Path) -> None:
    program = program_of(width)
    rest = -width % 8 or 8
    keys = [
        VALUE >> 16 - width ^ flipped for flipped in (0, 1, 1 << -(-width // 2), 1 << width - 1)
    ]
    frames = [(key << rest).to_bytes((width + rest) // 8, "big") + b"\0" for key in keys]

    bench = Bench(program)
    for command in parse_script("\n".join(f"packet 1 {frame.hex()}" for frame in frames)).commands:
        bench.run(command)

    arrivals = [(1, frame) for frame in frames]
    theirs = forwarded(tmp_path, program, arrivals, [OUT], FIRST_THRIFT_PORT + width)
    ours = [bytes(frame) for frame in bench.sent[OUT]]
    assert marks(ours) == [width, width - 1, 2, 0]
    assert (marks(theirs[OUT]) == marks(ours)) == is_right
