// Parsers: a varbit longer than its maximum gives HeaderTooShort
#define HEADERS data_t data; some_t some;
#define OWN_PARSER
header some_t { bit<8> bytes; varbit<16> rest; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        packet.extract(hdr.some, (bit<32>) hdr.data.a * 8);
        transition accept;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (standard.parser_error == error.HeaderTooShort) { hdr.data.b = 0xee; }
    }
}

#include "include/end.p4"
