// Parsers: a packet too short for a header stops the parser with PacketTooShort
#define HEADERS data_t data; data_t second;
#define OWN_PARSER
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.data); packet.extract(hdr.second); transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (standard.parser_error == error.PacketTooShort) { hdr.data.a = 0xee; }
        if (hdr.second.isValid()) { hdr.data.b = 1; }
    }
}

#include "include/end.p4"
