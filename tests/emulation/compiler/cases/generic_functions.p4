// Expressions: generic functions with inferred type arguments
T larger<T>(in T x, in T y) { return x > y ? x : y; }
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.a = larger(hdr.data.a, hdr.data.b);
        hdr.data.c = larger<bit<16>>(hdr.data.c, 0x0100);
    }
}

#include "include/end.p4"
