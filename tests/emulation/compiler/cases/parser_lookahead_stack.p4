// Parsers: lookahead of structs with stacks
header byte_t { bit<8> value; }
struct peek_t { bit<8> first; byte_t[2] rest; }
#define METADATA bit<8> seen;
#define OWN_PARSER
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        peek_t ahead;
        ahead = packet.lookahead<peek_t>();
        transition select(ahead.first, ahead.rest[1].value, ahead.rest[0].isValid()) {
            (1, 3, true): found;
            default: take;
        }
    }
    state found { meta.seen = 0xaa; transition take; }
    state take { packet.extract(hdr.data); transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 1; hdr.data.d[7:0] = meta.seen; }
}

#include "include/end.p4"
