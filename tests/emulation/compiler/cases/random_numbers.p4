// Architecture: random() within its bounds
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        random(hdr.data.a, 5, 9);
        bit<16> x;
        random(x, 7, 7);
        hdr.data.c = x;
    }
}

#include "include/end.p4"
