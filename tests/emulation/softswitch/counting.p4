// What passes at once: egress only counts. With LOOKS the frame tells what only the departure knows, with DROPS egress
// drops, with CLONES ingress asks for a copy, with LENGTHENS egress adds a header.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> to; bit<8> left; bit<16> seen; }
header more_t { bit<16> length; }
struct headers_t { h_t h; more_t more; }
struct metadata_t { bit<8> kept; }
parser P(packet_in packet, out headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(headers.h); transition accept; }
}
control V(inout headers_t headers, inout metadata_t meta) { apply { } }
control I(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(4) arrived;
    apply {
        bit<32> count;
        arrived.read(count, 2);
        headers.h.seen = count[15:0];
        arrived.write(2, count + 1);
        headers.h.left = headers.h.left - 1;
        meta.kept = headers.h.left;
        standard.egress_spec = (bit<9>) headers.h.to;
        if (headers.h.to == 9) { standard.mcast_grp = 1; }
        if (headers.h.to == 8) { mark_to_drop(standard); }
#ifdef CLONES
        clone(CloneType.I2E, 1);
#endif
    }
}
control E(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(16) departed;
    apply {
        bit<32> count;
        departed.read(count, (bit<32>) standard.egress_port);
        if (standard.deq_qdepth != 0) { count = count + 100; } else { count = count + 5000; }
        departed.write((bit<32>) standard.egress_port, count + (bit<32>) meta.kept + standard.packet_length);
#ifdef LOOKS
        headers.h.seen = standard.deq_qdepth[15:0];
#endif
#ifdef DROPS
        if (headers.h.left == 0) { mark_to_drop(standard); }
#endif
#ifdef LENGTHENS
        headers.more.setValid();
        headers.more.length = standard.packet_length[15:0];
#endif
    }
}
control U(inout headers_t headers, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t headers) { apply { packet.emit(headers.h); packet.emit(headers.more); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
