// Expressions: generic functions with inferred type arguments
T choose<T>(in bool first, in T x, in T y) { return first ? x : y; }
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.a = choose(hdr.data.a > hdr.data.b, hdr.data.a, hdr.data.b);
        hdr.data.c = choose<bit<16>>(hdr.data.c > 0x0100, hdr.data.c, 0x0100);
    }
}

#include "include/end.p4"
