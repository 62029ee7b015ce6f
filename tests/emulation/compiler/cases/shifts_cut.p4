// Expressions: what a shift by a run-time amount moves out is gone where the result is used
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.c = (bit<16>) (hdr.data.a[0:0] << hdr.data.b[0:0]) + (bit<16>) (hdr.data.a[6:4] << hdr.data.b[1:0]);
        hdr.data.d = (bit<32>) (hdr.data.a << hdr.data.b);
    }
}

#include "include/end.p4"
