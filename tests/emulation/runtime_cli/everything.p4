#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t { bit<32> src; bit<32> dst; bit<7> small; bit<1> last; }
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct meta_t { bit<8> color; }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x88B5: ipv4; default: accept; }
    }
    state ipv4 { packet.extract(hdr.ipv4); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    counter(4, CounterType.packets_and_bytes) seen;
    meter(4, MeterType.packets) speed;
    register<bit<16>>(4) memory;
    register<bit<72>>(1) wide;
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<8>>(MeterType.bytes) flow;

    action send(bit<9> port) { sm.egress_spec = port; }
    action drop() { mark_to_drop(sm); }
    action flood(bit<16> group) { sm.mcast_grp = group; }
    action mirror(bit<9> port) { clone(CloneType.I2E, 7); sm.egress_spec = port; }
    action rewrite(bit<48> dst, bit<9> port) { flow.read(meta.color); hdr.ethernet.dst = dst; sm.egress_spec = port; }

    table l2 {
        key = { hdr.ethernet.dst: exact; }
        actions = { send; flood; mirror; drop; }
        default_action = drop();
        counters = hits;
        size = 4;
    }
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { rewrite; drop; NoAction; }
        default_action = NoAction();
        meters = flow;
    }
    table acl {
        key = { hdr.ipv4.src: ternary; hdr.ipv4.small: range; hdr.ipv4.isValid(): exact; }
        actions = { drop; send; NoAction; }
        default_action = NoAction();
        support_timeout = true;
    }
    table fixed {
        key = { hdr.ethernet.type: exact; }
        actions = { NoAction; }
        const entries = { 0x88B5: NoAction(); }
    }
    table spread {
        key = { hdr.ethernet.src: exact; hdr.ipv4.dst: selector; }
        actions = { send; NoAction; }
        implementation = action_selector(HashAlgorithm.crc16, 8, 8);
    }

    apply {
        seen.count((bit<32>)(bit<2>)sm.ingress_port);
        bit<16> was;
        memory.read(was, 1);
        memory.write(2, was + 1);
        bit<72> all;
        wide.read(all, 0);
        wide.write(0, all + 0x010000000000000000);
        bit<32> color;
        speed.execute_meter(0, color);
        meta.color = (bit<8>)color;
        l2.apply();
        fixed.apply();
        spread.apply();
        if (hdr.ipv4.isValid()) { routes.apply(); acl.apply(); }
        if (meta.color == 2) { mark_to_drop(sm); }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply {} }
control C(inout headers_t hdr, inout meta_t meta) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); packet.emit(hdr.ipv4); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
