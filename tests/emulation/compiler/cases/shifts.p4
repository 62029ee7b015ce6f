// Expressions: shifts
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<16> by = hdr.data.c;
        hdr.data.d = (8w1 << hdr.data.b) ++ (hdr.data.a >> hdr.data.b) ++ (8w1 << by) ++ (hdr.data.a << 9);
        hdr.data.a = hdr.data.a << 1 >> 1;
    }
}

#include "include/end.p4"
