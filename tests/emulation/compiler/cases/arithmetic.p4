// Expressions: unsigned arithmetic wraps
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<8> a = hdr.data.a;
        bit<8> b = hdr.data.b;
        hdr.data.a = a + b;
        hdr.data.b = a - b;
        hdr.data.c = (bit<16>) a * 300;
        hdr.data.d = 24w0 ++ (~a ^ -b);
    }
}

#include "include/end.p4"
