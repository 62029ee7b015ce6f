"""The switch runs the output of this project's compiler: both halves of the JSON seam together."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from p4.v1 import p4runtime_pb2 as p4

from ofan_p4.compiler import compile_file, compile_source
from tests.emulation.softswitch.bench import Controller

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
    from ofan_p4.softswitch.p4runtime import P4RuntimeService

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


LEARNER = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; bit<8> count; }
@name("learned") struct note_t { bit<8> kind; }
struct headers { h_t h; }
struct meta { }
parser P(packet_in pkt, out headers hdr, inout meta m, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout meta m) { apply { } }
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
    action_selector(HashAlgorithm.crc16, 16, 4) unused;
    apply {
        sm.egress_spec = 1;
        if (hdr.h.kind == 1) { digest<note_t>(1, { hdr.h.count }); }
        if (hdr.h.kind == 2) { digest<note_t>(1, { hdr.h.kind }); }
        if (hdr.h.kind == 3) { digest(1, { hdr.h.kind, hdr.h.count }); }
    }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) { apply { } }
control C(inout headers hdr, inout meta m) { apply { } }
control D(packet_out pkt, in headers hdr) { apply { pkt.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def test_digests_of_one_struct_in_two_places_and_of_a_tuple(bench: Any) -> None:
    compiled = compile_source(LEARNER, "learner.p4")
    c = Controller(bench(json.dumps(compiled.json).encode()), compiled.p4info)
    c.set_pipeline(json.dumps(compiled.json).encode())
    for digest in compiled.p4info.digests:
        entity = p4.Entity()
        entity.digest_entry.digest_id = digest.preamble.id
        entity.digest_entry.config.SetInParent()
        c.write(("INSERT", entity))

    for frame in (b"\x01\x07", b"\x02\x07", b"\x03\x07"):
        c.bench.send(frame)

    names = {digest.preamble.id: digest.preamble.name for digest in compiled.p4info.digests}
    lists = [message.digest for message in c.received if message.HasField("digest")]

    assert [
        (names[item.digest_id], [m.bitstring for m in getattr(item.data[0], kind).members])
        for item, kind in zip(lists, ("struct", "struct", "tuple"), strict=True)
    ] == [("learned", [b"\x07"]), ("learned", [b"\x02"]), ("digest_2", [b"\x03", b"\x07"])]


NAMED = """
#include <core.p4>
#include <v1model.p4>
@p4runtime_translation("", string) type bit<9> port_id_t;
@p4runtime_translation("", string)
@p4runtime_translation_mappings({ {"", 0}, {"first", 7}, })
type bit<8> vrf_t;
@controller_header("packet_in") header packet_in_t { port_id_t from; bit<7> pad; }
@controller_header("packet_out") header packet_out_t { port_id_t to; bit<7> pad; }
header h_t { bit<8> kind; bit<8> vrf; }
struct seen_t { port_id_t from; bit<8> kind; vrf_t vrf; }
struct headers { packet_in_t to_cpu; packet_out_t from_cpu; h_t h; }
struct meta { vrf_t vrf; }
parser P(packet_in pkt, out headers hdr, inout meta m, inout standard_metadata_t sm) {
    state start { transition select(sm.ingress_port) { 510: cpu; default: rest; } }
    state cpu { pkt.extract(hdr.from_cpu); transition rest; }
    state rest { pkt.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout meta m) { apply { } }
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
    action set_vrf(vrf_t vrf) { m.vrf = vrf; hdr.h.vrf = (bit<8>) vrf; }
    action forward(port_id_t port) { sm.egress_spec = (bit<9>) port; }
    action punt() { sm.egress_spec = 510; }
    table classify { key = { hdr.h.kind: exact; } actions = { set_vrf; NoAction; } }
    table route {
        key = { m.vrf: exact @name("vrf"); }
        actions = { forward; punt; NoAction; }
    }
    apply {
        if (hdr.from_cpu.isValid()) {
            sm.egress_spec = (bit<9>) hdr.from_cpu.to;
            hdr.from_cpu.setInvalid();
        } else {
            classify.apply();
            route.apply();
            if (hdr.h.kind == 9) {
                digest<seen_t>(1, { (port_id_t) sm.ingress_port, hdr.h.kind, m.vrf });
            }
        }
    }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
    apply {
        if (sm.egress_port == 510) {
            hdr.to_cpu = { (port_id_t) sm.ingress_port, 0 };
        }
    }
}
control C(inout headers hdr, inout meta m) { apply { } }
control D(packet_out pkt, in headers hdr) { apply { pkt.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


@pytest.fixture
def named(bench: Any) -> Controller:
    """A controller that calls ports and VRFs by name."""
    compiled = compile_source(NAMED, "named.p4")
    source = json.dumps(compiled.json).encode()
    c = Controller(bench(source, cpu_port=510), compiled.p4info)
    c.set_pipeline(source)

    return c


def entry_of(c: Controller, table: str, match: bytes, action: str, **params: bytes) -> p4.Entity:
    """Return an entry with one exact key, by the names of the P4Info."""
    assert c.p4info is not None
    [about] = [item for item in c.p4info.tables if item.preamble.alias == table]
    [run] = [item for item in c.p4info.actions if item.preamble.alias == action]
    entity = p4.Entity()
    entity.table_entry.table_id = about.preamble.id
    entity.table_entry.match.add(field_id=1).exact.value = match
    entity.table_entry.action.action.action_id = run.preamble.id
    for item in run.params:
        entity.table_entry.action.action.params.add(param_id=item.id, value=params[item.name])

    return entity


def test_translated_types_are_strings_that_the_switch_numbers(named: Controller) -> None:
    for kind, vrf, port in ((1, b"red", b"3"), (2, b"blue", b"4"), (3, b"first", b"5")):
        named.write(("INSERT", entry_of(named, "classify", bytes([kind]), "set_vrf", vrf=vrf)))
        named.write(("INSERT", entry_of(named, "route", vrf, "forward", port=port)))

    sent = {kind: named.bench.send(bytes([kind, 0])) for kind in (1, 2, 3)}

    # Ports by their number, and the VRF that the program numbers; the others differ.
    assert [port for [(port, _)] in sent.values()] == [3, 4, 5]

    numbers = [frame[1] for [(_, frame)] in sent.values()]

    assert numbers[2] == 7
    assert len({0, *numbers}) == 4


def test_translated_types_are_read_as_they_were_written(named: Controller) -> None:
    written = entry_of(named, "route", b"red", "forward", port=b"Ethernet0")
    named.write(("INSERT", written))
    query = p4.Entity()
    query.table_entry.table_id = written.table_entry.table_id

    assert named.read(query) == [written]


def test_names_keep_their_numbers_over_pipelines(named: Controller) -> None:
    named.write(("INSERT", entry_of(named, "classify", b"\x01", "set_vrf", vrf=b"red")))
    [(_, before)] = named.bench.send(b"\x01\x00")
    named.set_pipeline(json.dumps(compile_source(NAMED, "named.p4").json).encode())
    for kind, vrf in ((1, b"blue"), (2, b"red")):
        named.write(("INSERT", entry_of(named, "classify", bytes([kind]), "set_vrf", vrf=vrf)))

    [(_, after)] = named.bench.send(b"\x02\x00")

    assert before[1] == after[1]


def test_an_empty_name_needs_a_mapping(named: Controller) -> None:
    assert named.code("INSERT", entry_of(named, "route", b"", "forward", port=b"1")) == "OK"

    refused = entry_of(named, "route", b"red", "forward", port=b"")

    assert named.code("INSERT", refused) == "INVALID_ARGUMENT"

    refused = entry_of(named, "route", b"\xff", "forward", port=b"1")

    assert named.code("INSERT", refused) == "INVALID_ARGUMENT"


def test_all_numbers_of_a_type_can_be_named_but_no_more(named: Controller) -> None:
    codes = [
        named.code("INSERT", entry_of(named, "route", b"vrf-%d" % i, "forward", port=b"1"))
        for i in range(256)
    ]
    # Two of the 256 numbers belong to the names that the program gives.
    assert [code for code in codes if code != "OK"] == ["RESOURCE_EXHAUSTED"] * 2


def test_translated_metadata_of_packets_is_a_string(named: Controller) -> None:
    named.write(("INSERT", entry_of(named, "classify", b"\x01", "set_vrf", vrf=b"red")))
    named.write(("INSERT", entry_of(named, "route", b"red", "punt")))

    assert named.bench.send(b"\x01\x00", port=6) == []

    [packet] = [message.packet for message in named.received if message.HasField("packet")]

    assert (packet.metadata[0].value, packet.payload[:1]) == (b"6", b"\x01")

    message = p4.StreamMessageRequest()
    message.packet.payload = b"\x01\x00"
    message.packet.metadata.add(metadata_id=1, value=b"2")
    message.packet.metadata.add(metadata_id=2, value=b"\x00")
    named.stream.receive(message)

    assert named.bench.drain([]) == [(2, b"\x01\x00")]


def test_translated_members_of_digests_are_strings(named: Controller) -> None:
    named.write(("INSERT", entry_of(named, "classify", b"\x09", "set_vrf", vrf=b"red")))

    assert named.p4info is not None

    entity = p4.Entity()
    entity.digest_entry.digest_id = named.p4info.digests[0].preamble.id
    entity.digest_entry.config.SetInParent()
    named.write(("INSERT", entity))

    named.bench.send(b"\x09\x00", port=6)
    [sent] = [message.digest for message in named.received if message.HasField("digest")]
    members = sent.data[0].struct.members

    assert [member.bitstring for member in members] == [b"6", b"\x09", b"red"]


RANKED = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; }
struct headers { h_t h; }
struct meta { }
parser P(packet_in pkt, out headers hdr, inout meta m, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout meta m) { apply { } }
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
    action forward(bit<9> port) { sm.egress_spec = port; }
    table t {
        key = { hdr.h.kind: ternary; }
        actions = { forward; NoAction; }
        size = 4;
        entries = {
            priority = 70: 8w0x10 &&& 0xf0: forward(1);
            priority = 90: 8w0x11: forward(2);
            priority = 50: _: forward(3);
        }
    }
    apply { t.apply(); }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) { apply { } }
control C(inout headers hdr, inout meta m) { apply { } }
control D(packet_out pkt, in headers hdr) { apply { pkt.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def test_initial_entries_have_their_own_priorities_and_leave_room(bench: Any) -> None:
    compiled = compile_source(RANKED, "ranked.p4")
    source = json.dumps(compiled.json).encode()
    c = Controller(bench(source), compiled.p4info)
    c.set_pipeline(source)
    query = p4.Entity()
    query.table_entry.table_id = compiled.p4info.tables[0].preamble.id
    read = c.read(query)

    assert [item.table_entry.priority for item in read] == [70, 90, 50]
    # The switch has the entries that the compiler lists for a controller to insert.
    assert [update.entity for update in compiled.entries.updates] == read
    assert [c.bench.send(bytes([kind]))[0][0] for kind in (0x11, 0x12, 0x20)] == [2, 1, 3]

    more = read[1]
    more.table_entry.priority = 95

    assert c.code("INSERT", more) == "OK"

    more.table_entry.priority = 96

    assert c.code("INSERT", more) == "RESOURCE_EXHAUSTED"
