// A program with one of everything that P4Runtime can address.
#include <core.p4>
#include <v1model.p4>

@controller_header("packet_out")
header packet_out_t { bit<9> port; bit<7> padding; }
@controller_header("packet_in")
header packet_in_t { bit<9> port; bit<7> padding; }
header data_t { bit<8> kind; bit<8> low; bit<16> mid; bit<32> high; }
struct headers_t { packet_out_t packet_out; packet_in_t packet_in; data_t data; }
struct metadata_t { @field_list(1) bit<8> kept; bit<2> color; }
struct learn_t { bit<8> kind; bit<32> high; }

parser P(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    @name("chosen") value_set<bit<8>>(2) chosen;
    state start {
        transition select(sm.ingress_port) { 510: from_controller; default: data; }
    }
    state from_controller { pkt.extract(hdr.packet_out); transition data; }
    state data { pkt.extract(hdr.data); transition select(hdr.data.kind) { chosen: special; default: accept; } }
    state special { meta.kept = 1; transition accept; }
}

control V(inout headers_t hdr, inout metadata_t meta) { apply { } }

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    counter(4, CounterType.packets_and_bytes) counted;
    meter(4, MeterType.packets) metered;
    register<bit<12>>(4) cells;
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<2>>(MeterType.bytes) limit;
    action_profile(3) members;
    action_selector(HashAlgorithm.crc16, 8, 16) choices;

    action forward(bit<9> port) { sm.egress_spec = port; }
    action drop() { mark_to_drop(sm); }
    action learn() { digest<learn_t>(1, { hdr.data.kind, hdr.data.high }); }
    action copy(bit<16> group) { sm.mcast_grp = group; }
    action mirror(bit<32> session) { clone(CloneType.I2E, session); }
    action note(bit<32> index) { counted.count(index); metered.execute_meter(index, meta.color); cells.write(index, 7); }

    action special_only() { }
    action default_only() { }

    table exact_table {
        key = { hdr.data.kind: exact; }
        actions = { forward; drop; learn; copy; mirror; note; NoAction; @tableonly special_only; @defaultonly default_only; }
        size = 8;
        counters = hits;
        default_action = NoAction();
    }
    action police() { limit.read(meta.color); }
    table metered_table { key = { hdr.data.kind: exact; } actions = { police; } default_action = police(); meters = limit; size = 4; }
    table lpm_table { key = { hdr.data.high: lpm; } actions = { forward; NoAction; } size = 4; }
    table ternary_table {
        key = { hdr.data.low: ternary; hdr.data.mid: range; hdr.data.kind: optional; }
        actions = { forward; drop; NoAction; }
        size = 4;
        const default_action = NoAction();
    }
    table const_table {
        key = { hdr.data.kind: exact; }
        actions = { forward; NoAction; }
        const entries = { 200: forward(2); 201: forward(3); }
    }
    table keyless_table { actions = { forward; NoAction; } default_action = NoAction(); }
    table idle_table { key = { hdr.data.kind: exact; } actions = { NoAction; } size = 4; support_timeout = true; }
    table indirect_table { key = { hdr.data.kind: exact; } actions = { forward; NoAction; } implementation = members; size = 4; }
    table selected_table {
        key = { hdr.data.kind: exact; hdr.data.high: selector; }
        actions = { forward; NoAction; }
        implementation = choices;
        size = 4;
    }
    apply {
        if (hdr.packet_out.isValid()) {
            sm.egress_spec = hdr.packet_out.port;
            hdr.packet_out.setInvalid();
        } else {
            lpm_table.apply();
            ternary_table.apply();
            const_table.apply();
            keyless_table.apply();
            idle_table.apply();
            metered_table.apply();
            indirect_table.apply();
            selected_table.apply();
            exact_table.apply();
            if (meta.kept == 1) { sm.egress_spec = 5; }
        }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.egress_port == 510) { hdr.packet_in.setValid(); hdr.packet_in.port = sm.ingress_port; hdr.packet_in.padding = 0; }
    }
}

control C(inout headers_t hdr, inout metadata_t meta) { apply { } }

control D(packet_out pkt, in headers_t hdr) {
    apply { pkt.emit(hdr.packet_in); pkt.emit(hdr.data); }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
