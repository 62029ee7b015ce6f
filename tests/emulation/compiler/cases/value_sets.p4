// Parsers: value sets
#define OWN_PARSER
#define METADATA bit<8> way;
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    value_set<bit<8>>(4) chosen;
    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.a) {
            chosen: one;
            0x20: two;
            default: accept;
        }
    }
    state one { meta.way = 1; transition accept; }
    state two { meta.way = 2; transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.b = meta.way;
    }
}

#include "include/end.p4"
