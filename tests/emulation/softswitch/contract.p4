// What callers of machine code see of a program: its words, its answers, a register, a draw.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> to; bit<8> drawn; bit<16> seen; }
header more_t { bit<16> length; bit<16> depth; }
struct headers_t { h_t h; more_t more; }
struct metadata_t { }
parser P(packet_in packet, out headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(headers.h); transition accept; }
}
control V(inout headers_t headers, inout metadata_t meta) { apply { } }
control I(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(4) seen;
    apply {
        bit<32> count;
        seen.read(count, 2);
        headers.h.seen = count[15:0];
        seen.write(2, count + 1);
        random(headers.h.drawn, 8w10, 8w20);
        standard.egress_spec = (bit<9>) headers.h.to;
        standard.priority = 5;
        if (headers.h.to == 9) { clone(CloneType.I2E, 1); }
    }
}
control E(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        headers.more.setValid();
        headers.more.length = standard.packet_length[15:0];
        headers.more.depth = standard.deq_qdepth[15:0];
        if (standard.egress_port == 8) { mark_to_drop(standard); }
        if (standard.egress_port == 9) { recirculate_preserving_field_list(0); }
    }
}
control U(inout headers_t headers, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t headers) { apply { packet.emit(headers.h); packet.emit(headers.more); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
