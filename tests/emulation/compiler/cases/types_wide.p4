// Types: bit<N> wider than 64 bits
#define HEADERS wide_t wide;
#define OWN_PARSER
header wide_t { bit<128> address; bit<72> rest; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.wide); transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.wide.address = hdr.wide.address + 1;
        if (hdr.wide.address > 0x0123456789abcdef0000000000000000) { hdr.wide.rest = hdr.wide.rest << 8; }
        hdr.wide.rest = hdr.wide.rest | (bit<72>) hdr.wide.address[127:120];
    }
}

#include "include/end.p4"
