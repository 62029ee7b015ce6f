// Parsers: verify sets an error of the program and leaves the parser
error { Unwanted }
#define HEADERS data_t data; data_t second;
#define OWN_PARSER
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        verify(hdr.data.a != 0 && hdr.data.a < 10, error.Unwanted);
        packet.extract(hdr.second);
        transition accept;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = standard.parser_error == error.Unwanted ? 9w2 : 9w1;
        if (hdr.second.isValid()) { hdr.second.a = 0xff; }
    }
}

#include "include/end.p4"
