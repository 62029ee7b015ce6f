// Types: header unions
#define HEADERS data_t data; choice_t choice;
#define OWN_PARSER
header short_t { bit<8> value; }
header long_t { bit<16> value; }
header_union choice_t { short_t short; long_t long; }
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.a) {
            1: short;
            2: long;
            default: accept;
        }
    }
    state short { packet.extract(hdr.choice.short); transition accept; }
    state long { packet.extract(hdr.choice.long); transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (hdr.choice.isValid()) { hdr.data.b = 1; }
        if (hdr.choice.long.isValid()) { hdr.data.c = hdr.choice.long.value; hdr.choice.short.setValid(); hdr.choice.short.value = 0x77; }
    }
}

#include "include/end.p4"
