// Architecture: resubmit in egress
#define OWN_EGRESS
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control CaseEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { resubmit_preserving_field_list(1); }  // error: 'resubmit_preserving_field_list' cannot be called here, only in ingress
}

#include "../include/end.p4"
