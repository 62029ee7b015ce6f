// Architecture: CloneType.E2E in ingress
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { clone(CloneType.E2E, 1); }  // error: CloneType.E2E is possible in egress only
}

#include "../include/end.p4"
