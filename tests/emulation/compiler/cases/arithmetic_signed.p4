// Expressions: signed addition, comparison, shift and widening
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        int<8> x = (int<8>) hdr.data.a;
        int<8> y = (int<8>) hdr.data.b;
        hdr.data.c = (bit<16>) (int<16>) (x + y);
        if (x < y) { hdr.data.d[31:24] = 1; }
        hdr.data.d[23:16] = (bit<8>) (x >> 2);
        hdr.data.d[15:8] = (bit<8>) (-x);
        hdr.data.d[7:0] = (bit<8>) (x * y);
    }
}

#include "include/end.p4"
