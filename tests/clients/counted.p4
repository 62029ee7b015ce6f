// A small switch with both kinds of counters and controller headers, for clients of P4Runtime.
#include <core.p4>
#include <v1model.p4>

@controller_header("packet_in")
header packet_in_t { bit<9> ingress_port; bit<7> padding; }
@controller_header("packet_out")
header packet_out_t { bit<9> egress_port; bit<7> padding; }
header ethernet_t { bit<48> dst; bit<48> src; bit<16> ethertype; }
struct headers_t { packet_in_t packet_in; packet_out_t packet_out; ethernet_t ethernet; }
struct meta_t { }

parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { transition select(s.ingress_port) { 9w510: parse_out; default: parse_ethernet; } }
    state parse_out { p.extract(h.packet_out); transition parse_ethernet; }
    state parse_ethernet { p.extract(h.ethernet); transition accept; }
}

control V(inout headers_t h, inout meta_t m) { apply { } }

control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    counter(4, CounterType.packets_and_bytes) seen;
    direct_counter(CounterType.packets) hits;
    action to(bit<9> port) { s.egress_spec = port; hits.count(); }
    action none() { mark_to_drop(s); hits.count(); }
    table t {
        key = { h.ethernet.dst: exact @name("dst"); }
        actions = { to; none; }
        default_action = none();
        counters = hits;
        size = 16;
    }
    apply {
        seen.count(1);
        if (h.packet_out.isValid()) { s.egress_spec = h.packet_out.egress_port; } else { t.apply(); }
    }
}

control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (s.egress_port == 510) { h.packet_in.setValid(); h.packet_in.ingress_port = s.ingress_port; h.packet_in.padding = 0; }
    }
}

control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h.packet_in); p.emit(h.ethernet); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
