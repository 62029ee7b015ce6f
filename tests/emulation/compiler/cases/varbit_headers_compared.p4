// Types: comparison and assignment of headers with a varbit field
#define HEADERS some_t first; some_t second;
#define OWN_PARSER
header some_t { bit<8> bytes; varbit<32> rest; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.first, (bit<32>) (packet.lookahead<bit<8>>() << 3));
        packet.extract(hdr.second, (bit<32>) (packet.lookahead<bit<8>>() << 3));
        transition accept;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 2;
        if (hdr.first == hdr.second) { standard.egress_spec = 1; }
        hdr.first = hdr.second;
    }
}

#include "include/end.p4"
