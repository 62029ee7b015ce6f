#include <core.p4>
#include <v1model.p4>

// The destination becomes two hashes of what follows it.
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
struct headers_t { ethernet_t ethernet; }
struct meta_t { bit<16> small; bit<32> large; bit<16> fixed; }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 2;
        hash(meta.small, HashAlgorithm.crc16_custom, 16w0, { hdr.ethernet.src, hdr.ethernet.type }, 32w65536);
        hash(meta.large, HashAlgorithm.crc32_custom, 32w0, { hdr.ethernet.src, hdr.ethernet.type }, 64w0x100000000);
        hash(meta.fixed, HashAlgorithm.crc16, 16w0, { hdr.ethernet.src }, 32w65536);
        hdr.ethernet.dst = meta.small ++ meta.large;
        hdr.ethernet.type = meta.fixed;
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply {} }
control C(inout headers_t hdr, inout meta_t meta) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
