// Architecture: update_checksum with a condition
#define HEADERS ip_t ip;
#define OWN_PARSER
#define OWN_COMPUTE
header ip_t { bit<16> first; bit<16> second; bit<8> kind; bit<8> rest; bit<16> sum; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.ip); transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 1; hdr.ip.second = hdr.ip.second + 1; }
}

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ip.kind == 4, { hdr.ip.first, hdr.ip.second, hdr.ip.kind, 8w0 }, hdr.ip.sum, HashAlgorithm.csum16);
    }
}

#include "include/end.p4"
