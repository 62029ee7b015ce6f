// Parsers: select with values, masks and default
#define OWN_PARSER
#define METADATA bit<8> way;
#include "include/begin.p4"

const bit<8> WANTED = 0x42;

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        bit<8> first = packet.lookahead<bit<8>>();
        meta.way = 0;
        transition select(first) {
            0xee: skip;
            default: read;
        }
    }
    state skip {
        packet.advance(8);
        transition read;
    }
    state read {
        packet.extract(hdr.data);
        transition select(hdr.data.a, hdr.data.c) {
            (WANTED, _): one;
            (0x10 &&& 0xf0, 0x0001 .. 0x0105): two;
            (3 .. 5, 0xffff): three;
            (_, 0x8000 &&& 0x8000): four;
            _: accept;
        }
    }
    state one { meta.way = 1; transition accept; }
    state two { meta.way = 2; transition accept; }
    state three { meta.way = 3; transition accept; }
    state four { meta.way = 4; transition accept; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.b = meta.way;
    }
}

#include "include/end.p4"
