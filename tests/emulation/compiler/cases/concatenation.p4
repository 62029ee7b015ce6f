// Expressions: concatenation of signed and unsigned values
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        int<8> x = (int<8>) hdr.data.a;
        int<16> joined = x ++ hdr.data.b;
        if (joined < 0) { hdr.data.c = 1; }
        hdr.data.d = (bit<32>) (bit<16>) joined ++ 4w0xa ++ hdr.data.a[3:0] ++ 8w1 == 0 ? 32w0 : 8w3 ++ hdr.data.a ++ (hdr.data.b ++ 4w5 ++ 4w6);
    }
}

#include "include/end.p4"
