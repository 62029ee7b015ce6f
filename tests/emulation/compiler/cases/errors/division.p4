// Expressions: division by a run-time value
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { hdr.data.a = hdr.data.a / hdr.data.b; }  // error: the right side of '/' must be known at compile time
}

#include "../include/end.p4"
