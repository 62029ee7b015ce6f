// Expressions: saturating operators
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        int<8> low = (int<8>) hdr.data.a;
        int<8> high = (int<8>) hdr.data.b;
        bit<8> a = hdr.data.a;
        hdr.data.a = a |+| hdr.data.b;
        hdr.data.b = a |-| hdr.data.b;
        hdr.data.c = (bit<8>) (low |+| high) ++ (bit<8>) (low |-| high);
    }
}

#include "include/end.p4"
