// Architecture: multicast groups with replication ids
#define OWN_EGRESS
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.mcast_grp = (bit<16>) hdr.data.a; }
}

control CaseEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.data.b = (bit<8>) standard.egress_rid;
        hdr.data.c = (bit<16>) standard.egress_port;
        hdr.data.d = standard.instance_type;
        if (standard.egress_port == 4) { mark_to_drop(standard); }
    }
}

#include "include/end.p4"
