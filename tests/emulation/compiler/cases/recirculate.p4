// Architecture: recirculation with a field list
#define METADATA @field_list(1, 2) bit<8> rounds;
#define OWN_EGRESS
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.a = hdr.data.a + 1;
        hdr.data.c = (bit<16>) standard.instance_type;
    }
}

control CaseEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.data.b = meta.rounds;
        if (meta.rounds < 3) {
            meta.rounds = meta.rounds + 1;
            recirculate_preserving_field_list(2);
        }
    }
}

#include "include/end.p4"
