// Parsers: errors
#define OWN_PARSER
#include "include/begin.p4"

error { Odd }

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        verify(hdr.data.a[0:0] == 0, error.Odd);
        transition select(hdr.data.b) {
            0: accept;
            1: reject;
        }
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (standard.parser_error == error.NoError) { hdr.data.c = 1; }
        else if (standard.parser_error == error.NoMatch) { hdr.data.c = 2; }
        else if (standard.parser_error == error.Odd) { hdr.data.c = 3; }
        else if (standard.parser_error == error.PacketTooShort) { hdr.data.setValid(); hdr.data.c = 4; }
    }
}

#include "include/end.p4"
