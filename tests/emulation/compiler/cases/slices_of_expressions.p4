// Expressions: slices of any value, and slices of slices written to
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.b = (hdr.data.a ++ hdr.data.b)[11:4];
        hdr.data.c[11:4][3:0] = 0xf;
        hdr.data.d[30:30] = 1;
        hdr.data.d[15:0] = (hdr.data.c + 1)[15:8] ++ 8w0x55;
    }
}

#include "include/end.p4"
