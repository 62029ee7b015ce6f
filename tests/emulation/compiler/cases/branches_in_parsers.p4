// Parsers: if statements
#define OWN_PARSER
#define METADATA bit<8> way;
#include "include/begin.p4"

bit<8> classify(in bit<8> x) {
    if (x > 0x40) { return 2; }
    return 1;
}

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        if (hdr.data.a == 0) { meta.way = 9; } else { meta.way = classify(hdr.data.a); }
        hdr.data.b = meta.way;
        transition select(meta.way == 2, hdr.data.c + 1) {
            (true, 2): marked;
            (_, _): accept;
        }
    }
    state marked { hdr.data.d = 0xabcd; transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 1; }
}

#include "include/end.p4"
