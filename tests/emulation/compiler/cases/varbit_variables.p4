// Types: varbit variables and copies
#define HEADERS some_t first; some_t second;
#define METADATA bit<8> unused; varbit<32> kept;
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
    varbit<32> swap;
    apply {
        standard.egress_spec = 1;
        swap = hdr.first.rest;
        hdr.first.rest = hdr.second.rest;
        meta.kept = swap;
        hdr.second.rest = meta.kept;
        if (hdr.first.rest == hdr.second.rest) { hdr.first.bytes = 0xee; }
    }
}

#include "include/end.p4"
