// Architecture: checksums of expressions
#define OWN_COMPUTE
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply { update_checksum(true, { hdr.data.a + 1, hdr.data.b }, hdr.data.c, HashAlgorithm.csum16); }  // error: the target computes checksums of fields and of numbers with a width only
}

#include "../include/end.p4"
