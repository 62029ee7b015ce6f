// Architecture: clone from egress to egress
#define OWN_EGRESS
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 1; }
}

control CaseEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.data.b = (bit<8>) standard.instance_type;
        hdr.data.c = (bit<16>) standard.egress_port;
        if (standard.instance_type == 0) { hdr.data.a = 0xee; clone(CloneType.E2E, 6); }
    }
}

#include "include/end.p4"
