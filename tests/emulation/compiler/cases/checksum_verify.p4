// Architecture: verify_checksum sets checksum_error
#define HEADERS ip_t ip;
#define OWN_PARSER
#define OWN_VERIFY
header ip_t { bit<16> first; bit<16> second; bit<16> sum; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.ip); transition accept; }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { verify_checksum(hdr.ip.second != 0, { hdr.ip.first, hdr.ip.second }, hdr.ip.sum, HashAlgorithm.csum16); }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = standard.checksum_error == 1 ? 9w2 : 9w1; }
}

#include "include/end.p4"
