// Parsers: next beyond the end of a stack gives StackOutOfBounds
#define HEADERS data_t data; byte_t[2] bytes;
#define OWN_PARSER
header byte_t { bit<8> value; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.data); transition more; }
    state more {
        packet.extract(hdr.bytes.next);
        transition select(hdr.bytes.last.value) { 0: accept; default: more; }
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (standard.parser_error == error.StackOutOfBounds) { hdr.data.a = 0xee; }
    }
}

#include "include/end.p4"
