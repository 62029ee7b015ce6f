"""The switch runs what this project's compiler writes: both halves of the JSON seam together."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from p4.v1 import p4runtime_pb2 as p4

from emulation.compiler import compile_file, compile_source

PROGRAMS = sorted((Path(__file__).parents[3] / "p4src").glob("*.p4"))

ROUTER = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; bit<8> count; varbit<32> rest; }
struct headers { h_t h; }
struct meta { }
parser P(packet_in pkt, out headers hdr, inout meta m, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.h, 16); transition accept; }
}
control V(inout headers hdr, inout meta m) { apply { } }
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
    register<bit<8>>(4) seen;
    action drop() { mark_to_drop(sm); }
    action forward(bit<9> port) { sm.egress_spec = port; }
    table routes {
        key = { hdr.h.kind: exact; } actions = { forward; drop; }
        size = 16; default_action = drop();
    }
    apply {
        bit<8> n;
        seen.read(n, 1);
        seen.write(1, n + 1);
        hdr.h.count = n;
        switch (routes.apply().action_run) {
            forward: { if (n == 2) { hdr.h.setInvalid(); return; } }
            drop: { exit; }
        }
        hdr.h.kind = hdr.h.kind |+| 200;
    }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) { apply { } }
control C(inout headers hdr, inout meta m) { apply { } }
control D(packet_out pkt, in headers hdr) { apply { pkt.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def test_a_compiled_program_with_registers_switch_and_varbit(bench: Any) -> None:
    run = bench(json.dumps(compile_source(ROUTER, "router.p4").json).encode())
    [routes] = [table for table in run.switch.pipeline.tables if table.spec.key]
    forward = next(
        a.id for a in run.switch.pipeline.program.actions.values() if a.name.endswith("forward")
    )
    routes.insert(((7, 0),), 0, forward, (3,))
    sent = [
        run.send(frame)
        for frame in (b"\7\0abcd", b"\7\0abc", b"\7\0abxy", b"\x08\0abcd", b"\7\0abcd")
    ]
    assert sent == [
        [(3, b"\xcf\0abcd")],
        [(3, b"\xcf\1abc")],
        [(3, b"xy")],
        [],
        [(3, b"\xcf\4abcd")],
    ]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_projects_programs_load_with_their_p4info_and_survive_noise(
    path: Path, bench: Any
) -> None:
    compiled = compile_file(path)
    run = bench(json.dumps(compiled.json).encode(), ports=9, cpu_port=510)
    from emulation.softswitch.p4runtime import P4RuntimeService

    service = P4RuntimeService(run.switch)
    stream = service.open_stream(lambda _message: None)
    hello = p4.StreamMessageRequest()
    hello.arbitration.device_id, hello.arbitration.election_id.low = 1, 1
    stream.receive(hello)
    request = p4.SetForwardingPipelineConfigRequest(device_id=1, action=3)
    request.election_id.low = 1
    request.config.p4info.CopyFrom(compiled.p4info)
    request.config.p4_device_config = json.dumps(compiled.json).encode()
    service.set_pipeline(request)
    noise = random.Random(path.stem)
    for _ in range(500):
        start = noise.choice(
            [b"", bytes(12) + b"\x08\x00\x45", bytes(12) + b"\x08\x00" + noise.randbytes(20)]
        )
        run.send(start + noise.randbytes(noise.randrange(80)), port=noise.choice([0, 1, 510]))
    counts = run.switch.counts
    dropped = sum(getattr(counts, name) for name in counts.__slots__ if name.startswith("dropped"))
    assert (
        counts.received == counts.transmitted + counts.packet_ins + dropped - counts.copies == 500
    )
