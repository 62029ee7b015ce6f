// Architecture: drops, multicast and clones together
#define METADATA @field_list(Lists.kept) bit<8> kept; bit<8> lost;
#define OWN_EGRESS
enum bit<8> Lists { kept = 3 }
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        meta.kept = meta.kept + 0x11;
        meta.lost = 0x22;
        if (hdr.data.a == 0) { mark_to_drop(standard); }
        if (hdr.data.a == 1) { standard.mcast_grp = 5; }
        if (hdr.data.a == 2) { clone_preserving_field_list(CloneType.I2E, 7, Lists.kept); }
        if (hdr.data.a == 3 && standard.instance_type == 0) { resubmit_preserving_field_list(Lists.kept); }
    }
}

control CaseEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.data.b = (bit<8>) standard.egress_rid;
        hdr.data.c = meta.kept ++ meta.lost;
        hdr.data.d = standard.instance_type;
        if (hdr.data.a == 9) { truncate(2); }
    }
}

#include "include/end.p4"
