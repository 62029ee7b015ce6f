// Architecture: fields of standard_metadata
#define OWN_EGRESS
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 3;
        hdr.data.a = (bit<8>) standard.ingress_port;
        hdr.data.b = (bit<8>) standard.packet_length;
        if (standard.mcast_grp == 0 && standard.instance_type == 0) { hdr.data.d = 1; }
        standard.priority = 5;
    }
}

control CaseEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.data.c = (bit<16>) standard.egress_port;
        hdr.data.d[15:8] = (bit<8>) standard.priority;
    }
}

#include "include/end.p4"
