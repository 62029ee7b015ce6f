// Parsers: select without a matching case gives NoMatch, and the packet goes on
#define OWN_PARSER
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.a) { 1: accept; 2: more; }
    }
    state more { hdr.data.b = 2; transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (standard.parser_error == error.NoMatch) { hdr.data.c = 0xbad; }
    }
}

#include "include/end.p4"
