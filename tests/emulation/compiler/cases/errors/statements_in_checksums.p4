// Architecture: statements in the checksum controls
#define OWN_COMPUTE
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply { hdr.data.a = 1; }  // error: the target allows only calls of the checksum functions here
}

#include "../include/end.p4"
