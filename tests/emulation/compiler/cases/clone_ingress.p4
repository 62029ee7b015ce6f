// Architecture: clone to egress with a field list
enum bit<8> Lists { KEPT = 1 }
#define METADATA @field_list(Lists.KEPT) bit<8> kept; bit<8> lost;
#define OWN_EGRESS
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        meta.kept = 0x77;
        meta.lost = 0x88;
        hdr.data.a = 0xaa;
        clone_preserving_field_list(CloneType.I2E, 5, Lists.KEPT);
        meta.kept = 0x99;
    }
}

control CaseEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.data.b = (bit<8>) standard.instance_type;
        hdr.data.c = meta.kept ++ meta.lost;
    }
}

#include "include/end.p4"
