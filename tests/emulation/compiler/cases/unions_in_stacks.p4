// Types: stacks of header unions with next and last
#define HEADERS data_t data; choice_t[3] choices;
#define OWN_PARSER
header short_t { bit<8> kind; bit<8> value; }
header long_t { bit<8> kind; bit<16> value; }
header_union choice_t { short_t short; long_t long; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.data); transition next; }
    state next {
        transition select(packet.lookahead<bit<8>>()) {
            1: short;
            2: long;
            default: accept;
        }
    }
    state short { packet.extract(hdr.choices.next.short); transition next; }
    state long { packet.extract(hdr.choices.next.long); transition next; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (hdr.choices[0].short.isValid()) { hdr.data.a = hdr.choices[0].short.value; }
        if (hdr.choices[1].long.isValid()) { hdr.data.c = hdr.choices[1].long.value; }
        if (hdr.choices[2].isValid()) { hdr.data.b = 1; }
    }
}

#include "include/end.p4"
