// Expressions: shifts by run-time amounts beyond the width
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<64> x = 0x8000000000000001;
        bit<64> left = x << hdr.data.c;
        bit<64> right = x >> hdr.data.c;
        int<16> signed = (int<16>) 16w0x8000 >> hdr.data.c;
        hdr.data.a = (bit<8>) (left >> 56) | (bit<8>) left;
        hdr.data.b = (bit<8>) (right >> 56) | (bit<8>) right;
        hdr.data.d = (bit<32>) (bit<16>) signed;
    }
}

#include "include/end.p4"
