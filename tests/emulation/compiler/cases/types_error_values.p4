// Types: error values in variables and comparisons
error { Strange, Odd }
#define METADATA error seen;
#define OWN_PARSER
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        meta.seen = hdr.data.a == 1 ? error.Strange : error.Odd;
        verify(hdr.data.b == 0, error.Strange);
        transition accept;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (meta.seen == error.Strange) { hdr.data.c = 1; }
        if (standard.parser_error == error.Strange) { hdr.data.c = hdr.data.c + 2; }
        if (standard.parser_error == error.NoError) { hdr.data.d = 0xffffffff; }
    }
}

#include "include/end.p4"
