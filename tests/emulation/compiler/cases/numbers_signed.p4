// Expressions: signed numbers whose first bit is set, as 8s0b1010_1010 (-86) and 1s1 (-1)
#include "include/begin.p4"

const int<8> MINUS_86 = 8s0b1010_1010;

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        int<8> x = (int<8>) hdr.data.a;
        hdr.data.c = (bit<16>) (int<16>) MINUS_86;
        hdr.data.d[31:24] = (bit<8>) (int<8>) 1s1;
        hdr.data.d[23:16] = (bit<8>) (x + 8s255);
        hdr.data.d[15:8] = (bit<8>) (-8s128);
        if (x < 8s0x80 + 8s2) { hdr.data.d[7:0] = 1; }
        if (1s1 < 1s0) { hdr.data.b = 2; }
    }
}

#include "include/end.p4"
