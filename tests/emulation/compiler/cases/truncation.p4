// Architecture: truncate shortens the packet
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        truncate((bit<32>) hdr.data.a);
    }
}

#include "include/end.p4"
