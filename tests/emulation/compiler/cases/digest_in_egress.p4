// Architecture: a digest in egress tells nobody, as on BMv2
#define OWN_EGRESS
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 1; }
}

control CaseEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        digest(1, { hdr.data.a, hdr.data.b });
        hdr.data.c = 7;
    }
}

#include "include/end.p4"
