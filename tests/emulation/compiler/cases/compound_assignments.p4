// Statements: compound assignments, also to slices
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.a += 3;
        hdr.data.b -= 1;
        hdr.data.c <<= 4;
        hdr.data.c |= 1;
        hdr.data.d ^= 0xffffffff;
        hdr.data.d[7:0] &= 0x0f;
        hdr.data.d[15:8] |+|= 0xff;
        hdr.data.b |-|= 200;
    }
}

#include "include/end.p4"
