"""P4Info of whole programs, with ids and names as p4c gives them: controllers take either."""

from __future__ import annotations

import pytest

from ofan_p4.compiler import CompileError, compile_source
from ofan_p4.compiler.backend.identifiers import aliases, field_ids, jenkins_hash
from ofan_p4.compiler.backend.p4info_files import message_text

# isort: split
from p4.config.v1 import p4info_pb2

PROGRAM = """#include <core.p4>
#include <v1model.p4>

type bit<9> port_t;
@controller_header("packet_in")
header packet_in_t { @id(5) bit<9> ingress_port; bit<7> unused; }
header ipv4_t { bit<32> src_addr; bit<32> dst_addr; }
struct learned_t { bit<32> address; bit<9> port; }
struct headers_t { packet_in_t packet_in; ipv4_t ipv4; }
struct meta_t { port_t port; }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    value_set<bit<16>>(4) kinds;
    state start {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.src_addr[15:0]) { kinds: accept; default: accept; }
    }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

register<bit<32>>(8) bytes;

control Inner(inout headers_t hdr) {
    action mark(@id(7) bit<4> colour, bit<3> shade) {}
    @id(0x1234) @brief("Marks packets") table marks {
        key = { hdr.ipv4.dst_addr: ternary @name("destination"); hdr.ipv4.isValid(): exact @id(9); }
        actions = { mark; @defaultonly NoAction; }
        size = 77;
    }
    apply { marks.apply(); }
}

control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    counter(16, CounterType.bytes) seen;
    meter(4, MeterType.packets) limits;
    direct_counter(CounterType.packets_and_bytes) hits;
    action_selector(HashAlgorithm.crc16, 64, 10) selector;
    Inner() inner;
    action drop() { mark_to_drop(sm); }
    action forward(port_t port) { meta.port = port; seen.count(1); }
    table ipv4_lpm {
        key = { hdr.ipv4.dst_addr: lpm; meta.port: exact; }
        actions = { forward; drop; }
        const default_action = drop();
        counters = hits;
        support_timeout = true;
    }
    table chosen {
        key = { hdr.ipv4.src_addr: selector; hdr.ipv4.dst_addr: exact; }
        actions = { forward; }
        implementation = selector;
    }
    table fixed {
        key = { sm.ingress_port: exact; }
        actions = { forward; NoAction; }
        default_action = forward((port_t) 5);
        const entries = { 1: NoAction(); }
    }
    apply {
        if (ipv4_lpm.apply().miss) { chosen.apply(); }
        fixed.apply();
        inner.apply(hdr);
        digest<learned_t>(1, { hdr.ipv4.src_addr, sm.ingress_port });
        bytes.write(0, 1);
    }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply {} }
@pkginfo(name="demo", version="1") V1Switch(P(), V(), MyIngress(), MyEgress(), V(), D()) main;
"""


@pytest.fixture(scope="module")
def info() -> p4info_pb2.P4Info:
    return compile_source(PROGRAM, "demo.p4").p4info


def table(info: p4info_pb2.P4Info, name: str) -> p4info_pb2.Table:
    return next(item for item in info.tables if item.preamble.name == name)


def action(info: p4info_pb2.P4Info, name: str) -> p4info_pb2.Action:
    return next(item for item in info.actions if item.preamble.name == name)


@pytest.mark.parametrize(
    ("name", "hashed"),
    [("MyIngress.drop", 25652968), ("NoAction", 21257015), ("MyIngress.actTbl", 23137650)],
)
def test_ids_of_actions_are_those_of_p4c(name: str, hashed: int) -> None:
    assert 0x01 << 24 | jenkins_hash(name.encode()) & 0xFFFFFF == hashed


def test_id_annotations_get_the_prefix_of_their_kind(info: p4info_pb2.P4Info) -> None:
    assert table(info, "MyIngress.inner.marks").preamble.id == 0x02001234


def test_every_id_has_the_prefix_of_its_kind(info: p4info_pb2.P4Info) -> None:
    kinds = {
        0x01: info.actions,
        0x02: info.tables,
        0x03: info.value_sets,
        0x04: info.controller_packet_metadata,
        0x11: info.action_profiles,
        0x12: info.counters,
        0x13: info.direct_counters,
        0x14: info.meters,
        0x16: info.registers,
        0x17: info.digests,
    }
    for prefix, objects in kinds.items():
        assert [item.preamble.id >> 24 for item in objects] == [prefix] * len(objects) != []


def test_match_fields_are_named_by_the_text_of_their_key(info: p4info_pb2.P4Info) -> None:
    fields = table(info, "MyIngress.ipv4_lpm").match_fields

    assert [(item.id, item.name, item.bitwidth) for item in fields] == [
        (1, "hdr.ipv4.dst_addr", 32),
        (2, "meta.port", 9),
    ]
    assert fields[0].match_type == p4info_pb2.MatchField.LPM
    assert fields[1].type_name.name == "port_t"


def test_keys_take_annotated_names_and_ids(info: p4info_pb2.P4Info) -> None:
    fields = table(info, "MyIngress.inner.marks").match_fields
    assert [(item.id, item.name) for item in fields] == [
        (1, "destination"),
        (9, "hdr.ipv4.$valid$"),
    ]


def test_selector_keys_are_not_match_fields(info: p4info_pb2.P4Info) -> None:
    chosen = table(info, "MyIngress.chosen")

    assert [(item.id, item.name) for item in chosen.match_fields] == [(2, "hdr.ipv4.dst_addr")]

    profile = info.action_profiles[0]

    assert chosen.implementation_id == profile.preamble.id
    assert (profile.size, profile.with_selector, list(profile.table_ids)) == (
        64,
        True,
        [chosen.preamble.id],
    )


def test_default_actions_and_sizes(info: p4info_pb2.P4Info) -> None:
    lpm, fixed, marks = (
        table(info, f"MyIngress.{name}") for name in ("ipv4_lpm", "fixed", "inner.marks")
    )

    assert lpm.const_default_action_id == action(info, "MyIngress.drop").preamble.id
    assert fixed.initial_default_action.arguments[0].value == b"\x00\x05"
    assert (fixed.const_default_action_id, fixed.is_const_table, fixed.has_initial_entries) == (
        0,
        True,
        True,
    )
    assert (lpm.size, marks.size) == (1024, 77)
    assert lpm.idle_timeout_behavior == p4info_pb2.Table.NOTIFY_CONTROL


def test_implicit_default_is_a_defaultonly_no_action(info: p4info_pb2.P4Info) -> None:
    reference = table(info, "MyIngress.chosen").action_refs[-1]

    assert reference.id == action(info, "NoAction").preamble.id
    assert reference.scope == p4info_pb2.ActionRef.DEFAULT_ONLY


def test_hidden_actions_are_not_told() -> None:
    hidden = PROGRAM.replace("action forward", "@hidden action forward")
    p4info = compile_source(hidden.replace("action drop", "@hidden action drop"), "x.p4").p4info
    lpm = table(p4info, "MyIngress.ipv4_lpm")

    assert not lpm.action_refs and not lpm.const_default_action_id
    assert not {"MyIngress.forward", "MyIngress.drop"} & {
        listed.preamble.name for listed in p4info.actions
    }


def test_action_parameters(info: p4info_pb2.P4Info) -> None:
    params = action(info, "MyIngress.inner.mark").params
    assert [(item.id, item.name, item.bitwidth) for item in params] == [
        (7, "colour", 4),
        (2, "shade", 3),
    ]


def test_extern_objects(info: p4info_pb2.P4Info) -> None:
    assert (info.counters[0].size, info.counters[0].spec.unit) == (16, p4info_pb2.CounterSpec.BYTES)
    assert (info.meters[0].size, info.meters[0].spec.unit) == (4, p4info_pb2.MeterSpec.PACKETS)
    assert info.registers[0].preamble.name == "bytes"
    assert info.registers[0].type_spec.bitstring.bit.bitwidth == 32

    lpm = table(info, "MyIngress.ipv4_lpm")

    assert list(lpm.direct_resource_ids) == [info.direct_counters[0].preamble.id]
    assert info.direct_counters[0].direct_table_id == lpm.preamble.id


def test_packet_headers_digests_and_value_sets(info: p4info_pb2.P4Info) -> None:
    header = info.controller_packet_metadata[0]

    assert header.preamble.name == "packet_in"
    assert [(item.id, item.name, item.bitwidth) for item in header.metadata] == [
        (5, "ingress_port", 9),
        (2, "unused", 7),
    ]
    assert info.digests[0].type_spec.struct.name == "learned_t"
    assert (info.value_sets[0].size, info.value_sets[0].match[0].bitwidth) == (4, 16)


def test_documentation_and_package(info: p4info_pb2.P4Info) -> None:
    assert table(info, "MyIngress.inner.marks").preamble.doc.brief == "Marks packets"
    assert (info.pkg_info.arch, info.pkg_info.name, info.pkg_info.version) == (
        "v1model",
        "demo",
        "1",
    )


def test_new_types_are_described(info: p4info_pb2.P4Info) -> None:
    text = message_text(info)
    assert 'key: "port_t"' in text and "bitwidth: 9" in text


def test_alias_is_the_shortest_unique_suffix() -> None:
    assert aliases(["d.a.c", "e.b.c", "x"]) == {"d.a.c": "a.c", "e.b.c": "b.c", "x": "x"}
    assert aliases(["a", "c.a"]) == {"a": "a", "c.a": "c.a"}


def test_field_ids_fill_the_gaps_that_annotations_leave() -> None:
    assert field_ids([None, 1, None]) == [2, 1, 3]
    assert field_ids([None, None]) == [1, 2]


def test_an_id_given_twice_is_an_error() -> None:
    clash = PROGRAM.replace("table ipv4_lpm", "@id(0x1234) table ipv4_lpm")
    with pytest.raises(CompileError, match="given twice"):
        compile_source(clash, "demo.p4")
