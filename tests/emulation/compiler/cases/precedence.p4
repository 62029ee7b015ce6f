// Expressions: precedence of operators
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        // Unlike in C, & binds tighter than ==, and | tighter than <.
        if (hdr.data.a & 1 == 0) { hdr.data.b = 1; } else { hdr.data.b = 2; }
        bool odd = hdr.data.a | 1 < 2 || hdr.data.a == 0xff;
        hdr.data.c = (bit<16>) (bit<1>) odd;
        hdr.data.d = 1 + 2 * 3 << 1;
    }
}

#include "include/end.p4"
