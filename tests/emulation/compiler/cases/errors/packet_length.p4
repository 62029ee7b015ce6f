// Parsers: packet_in.length()
#define OWN_PARSER
#include "../include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { hdr.data.d = packet.length(); transition accept; }  // error: the target does not know the method 'length' of packet
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

#include "../include/end.p4"
