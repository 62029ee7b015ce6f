// Architecture: checksums with the payload
#define HEADERS udp_t udp;
#define OWN_PARSER
#define OWN_VERIFY
#define OWN_COMPUTE
header udp_t { bit<16> port; bit<16> sum; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.udp); transition accept; }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { verify_checksum_with_payload(hdr.udp.port == 7, { hdr.udp.port }, hdr.udp.sum, HashAlgorithm.csum16); }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = standard.checksum_error == 1 ? 9w2 : 9w1;
        hdr.udp.port = hdr.udp.port + 1;
    }
}

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply { update_checksum_with_payload(true, { hdr.udp.port }, hdr.udp.sum, HashAlgorithm.csum16); }
}

#include "include/end.p4"
