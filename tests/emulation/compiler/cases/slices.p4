// Expressions: slices
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.a[7:4] = hdr.data.b[3:0];
        hdr.data.c[11:4][3:0] = 4w0xf;
        hdr.data.d[31:16] = hdr.data.d[15:0];
        hdr.data.d[3:0] += 2;
        hdr.data.b = hdr.data.b[7:0][6:1] ++ hdr.data.b[0:0] ++ 1w1;
    }
}

#include "include/end.p4"
