// Expressions: division of run-time values by anything but a power of two
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { hdr.data.a = hdr.data.a % 3; }  // error: the target can compute '%' of run-time values only with a power of two on the right
}

#include "../include/end.p4"
