// Expressions: signed numbers
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        int<8> x = (int<8>) hdr.data.a;
        hdr.data.b = x < 0 ? 8w1 : 8w0;
        hdr.data.c = (bit<16>) (int<16>) (x >> 1);
        hdr.data.d = (bit<32>) (int<32>) (x * 3);
    }
}

#include "include/end.p4"
