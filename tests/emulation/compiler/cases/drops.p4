// Architecture: mark_to_drop, and a later egress_spec that revives the packet
#define OWN_EGRESS
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (hdr.data.a == 1) { mark_to_drop(standard); }
        if (hdr.data.a == 2) { mark_to_drop(standard); standard.egress_spec = 2; }
        if (hdr.data.a == 3) { standard.egress_spec = 511; }
        hdr.data.b = 1;
    }
}

control CaseEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (hdr.data.a == 4) { mark_to_drop(standard); }
        if (hdr.data.a == 5) { standard.egress_spec = 3; }
    }
}

#include "include/end.p4"
