// Expressions: slices of any value, slices of slices written to, [low+:width]
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.b = (hdr.data.a ++ hdr.data.b)[11:4];
        hdr.data.c[11:4][3:0] = 0xf;
        hdr.data.d[30:30] = 1;
        hdr.data.d[15:0] = (hdr.data.c + 1)[15:8] ++ 8w0x55;
        hdr.data.a[4+:4] = hdr.data.d[0+:4];
    }
}

#include "include/end.p4"
