"""The traced form of a program: the same packets as the plain form, and a record of every step."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from ofan_p4.compiler import compile_file, compile_source
from ofan_p4.softswitch.codegen.assembly import assemble
from ofan_p4.softswitch.codegen.loading import load
from ofan_p4.softswitch.control.switch import Switch
from ofan_p4.softswitch.control.trace import Step, Walk
from ofan_p4.softswitch.state.replication import CloneSession, Replica
from ofan_p4.stf.bench import Bench
from ofan_p4.stf.script import Expect, parse_script

ROOT = Path(__file__).parents[3]
PROGRAMS = sorted((ROOT / "p4src").glob("*.p4"))
CASES = sorted((ROOT / "tests/emulation/compiler/cases").glob("*.stf"))

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; bit<8> count; bit<16> sum; }
struct headers { h_t h; }
struct meta { }
parser P(packet_in pkt, out headers hdr, inout meta m, inout standard_metadata_t sm) {
    state start {
        pkt.extract(hdr.h);
        transition select(hdr.h.kind) { 9: odd; default: accept; }
    }
    state odd { verify(hdr.h.count == 0, error.NoMatch); transition accept; }
}
control V(inout headers hdr, inout meta m) { apply { } }
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
    register<bit<8>>(4) seen;
    action forward(bit<9> port) { sm.egress_spec = port; }
    action drop() { mark_to_drop(sm); }
    action copy() { clone(CloneType.I2E, 5); sm.mcast_grp = 1; }
    table routes {
        key = { hdr.h.kind: exact; hdr.h.sum: ternary; }
        actions = { forward; drop; copy; }
        const default_action = drop();
        const entries = { (1, 0x1200 &&& 0xff00): forward(3); (2, _): copy(); (9, _): forward(77); }
    }
    apply {
        bit<8> n;
        seen.read(n, 2);
        if (n < 200) { seen.write(2, n + 1); }
        hdr.h.count = n;
        routes.apply();
    }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
    apply { if (sm.egress_port == 4) { mark_to_drop(sm); } }
}
control C(inout headers hdr, inout meta m) {
    apply { update_checksum(true, { hdr.h.kind, hdr.h.count }, hdr.h.sum, HashAlgorithm.csum16); }
}
control D(packet_out pkt, in headers hdr) { apply { pkt.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def walked(frame: bytes) -> list[Step]:
    steps: list[Step] = []
    switch = Switch(0, lambda: 0, lambda low, _high: low, range(8), walk=Walk(steps.append))
    switch.load(json.dumps(compile_source(PROGRAM, "small.p4").json).encode())
    switch.replication.groups[1] = (Replica(2, 7), Replica(4, 8))
    switch.replication.sessions[5] = CloneSession((Replica(6),))
    for pending in switch.ingress(1, frame):
        switch.egress(pending)

    return steps


def said(steps: list[Step], *kinds: str) -> list[str]:
    return [step.text for step in steps if step.kind in kinds]


def test_a_hit_is_told_with_key_entry_action_and_line() -> None:
    steps = walked(bytes.fromhex("01001234beef"))
    [table] = [step for step in steps if step.kind == "table"]

    assert table.text == (
        "table I.routes, key hdr.h.kind=1, hdr.h.sum=0x1234: hit, "
        "hdr.h.kind=1, hdr.h.sum=0x1200 &&& 0xff00, priority 3 -> I.forward(port=3)"
    )

    line = PROGRAM.splitlines().index("    table routes {") + 1

    assert table.where == f"small.p4:{line}"
    assert table.data["key"] == {"hdr.h.kind": 1, "hdr.h.sum": 0x1234}
    assert said(steps, "action", "enqueued") == [
        "action I.forward(port=3)",
        "to port 3, priority 0",
    ]


def test_the_way_through_the_parser_is_told() -> None:
    steps = walked(bytes.fromhex("09010000"))
    assert said(steps, "state", "extract", "select", "parser_error") == [
        "parser state start",
        "extracted h at byte 0: kind=9, count=1, sum=0",
        "select (9): odd",
        "parser state odd",
        "parser error NoMatch",
    ]


def test_registers_checksums_and_bytes_are_told() -> None:
    steps = walked(bytes.fromhex("01001200ff"))
    assert said(
        steps, "condition", "register_read", "register_write", "checksum_updated", "emit", "sent"
    ) == [
        "register read I.seen[2] = 0",
        "if (n < 200): true",
        "register write I.seen[2] = 1",
        "if (sm.egress_port == 4): false",
        "checksum h.sum = 0xfeff",
        "deparser emits h, 1 more bytes",
        "sent 5 bytes from port 3: 0100feffff",
    ]


def test_copies_keep_the_number_of_their_packet_and_drops_are_told() -> None:
    steps = walked(bytes.fromhex("02000000"))

    assert said(steps, "clone", "multicast", "egress", "dropped")[1:] == [
        "a clone to session 5",
        "to multicast group 1",
        "egress of port 6 (an ingress clone, instance 0)",
        "egress of port 2 (a replica, instance 7)",
        "egress of port 4 (a replica, instance 8)",
        "dropped by egress",
    ]
    assert {step.packet for step in steps} == {1}
    assert said(walked(b"\3\0\0\0"), "dropped") == ["dropped by ingress"]


def test_a_port_that_is_not_there_is_told() -> None:
    assert said(walked(b"\x09\0\0\0"), "enqueued") == [
        "to port 77, priority 0, which is down or does not exist"
    ]


def test_without_a_listener_nothing_is_generated_for_it() -> None:
    source = json.dumps(compile_source(PROGRAM, "small.p4").json).encode()
    program = load(source)

    assert "trace" not in assemble(program).source
    assert "trace(" in assemble(program, is_traced=True).source


def noise(rng: random.Random) -> bytes:
    start = rng.choice(
        [
            b"",
            bytes(12) + b"\x08\x00\x45",
            bytes(12) + b"\x08\x06",
            bytes(12) + b"\x08\x00" + rng.randbytes(20),
        ]
    )
    return start + rng.randbytes(rng.randrange(80))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_traced_programs_send_what_plain_ones_send(path: Path) -> None:
    source = json.dumps(compile_file(path).json).encode()
    walk = Walk(lambda _step: None)
    switches = [
        Switch(0, lambda: 0, random.Random(7).randint, range(511), walk=walk and chosen)
        for chosen in (None, walk)
    ]
    rng = random.Random(path.stem)
    for switch in switches:
        switch.load(source)
    for _ in range(200):
        port, frame = rng.choice([0, 1, 510]), noise(rng)
        sent = [
            [switch.egress(pending) for pending in switch.ingress(port, frame)]
            for switch in switches
        ]
        assert sent[0] == sent[1]

    assert switches[0].counts == switches[1].counts


@pytest.mark.slow
@pytest.mark.parametrize("script", CASES, ids=lambda path: path.stem)
def test_traced_cases_send_what_plain_ones_send(script: Path) -> None:
    program: dict[str, Any] = compile_file(script.with_suffix(".p4")).json
    benches = [Bench(program), Bench(program, Walk(lambda _step: None))]
    for bench in benches:
        for command in parse_script(script.read_text()).commands:
            if not isinstance(command, Expect):
                bench.run(command)

    assert benches[0].sent == benches[1].sent
