// Parsers: select on several keys with masks, ranges, don't-care and default
#define METADATA bit<8> way;
#define OWN_PARSER
#include "include/begin.p4"

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.a, hdr.data.c[15:8], hdr.data.b == 7) {
            (1, 0x10 &&& 0xf0, _): one;
            (2 .. 5, _, false): two;
            (_, 0xff, true): three;
            default: accept;
        }
    }
    state one { meta.way = 1; transition accept; }
    state two { meta.way = 2; transition accept; }
    state three { meta.way = 3; transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 1; hdr.data.d = (bit<32>) meta.way; }
}

#include "include/end.p4"
