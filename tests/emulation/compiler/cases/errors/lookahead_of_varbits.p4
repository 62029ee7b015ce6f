// Parsers: lookahead of varbits
#define OWN_PARSER
header some_t { varbit<8> x; }
#include "../include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { some_t ahead = packet.lookahead<some_t>(); transition accept; }  // error: some_t has no fixed width
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

#include "../include/end.p4"
