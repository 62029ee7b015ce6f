// Parsers: sub-parsers
#define OWN_PARSER
#define HEADERS data_t data; data_t second;
#include "include/begin.p4"

parser Twice(packet_in packet, out data_t first, out bit<8> seen) {
    state start {
        packet.extract(first);
        seen = first.a;
        transition select(first.b) {
            0: accept;
            default: mark;
        }
    }
    state mark {
        first.c = 0xcccc;
        transition accept;
    }
}

parser CaseParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Twice() twice;
    bit<8> a;
    bit<8> b = 3;
    state start {
        twice.apply(packet, hdr.data, a);
        twice.apply(packet, hdr.second, b);
        hdr.second.d = (bit<32>) (a + b);
        transition accept;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 1; }
}

#include "include/end.p4"
