// Statements: a compound assignment reads its left side before the right one changes it
#include "include/begin.p4"

bit<8> grown(inout bit<8> x) { x = x + 16; return 1; }

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<8> count = hdr.data.c[15:8];
        hdr.data.a += grown(hdr.data.a);
        hdr.data.b = hdr.data.b + grown(hdr.data.b);
        count -= grown(count);
        hdr.data.c[15:8] = count;
        hdr.data.c[7:0] |= grown(hdr.data.d[7:0]);
    }
}

#include "include/end.p4"
