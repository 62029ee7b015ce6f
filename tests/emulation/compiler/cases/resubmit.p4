// Architecture: resubmit with a field list
#define METADATA @field_list(1) bit<8> rounds; bit<8> lost;
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.a = hdr.data.a + 1;
        hdr.data.b = meta.rounds;
        hdr.data.c = (bit<16>) standard.instance_type;
        hdr.data.d[7:0] = meta.lost;
        if (meta.rounds < 3) {
            meta.rounds = meta.rounds + 1;
            meta.lost = 9;
            resubmit_preserving_field_list(1);
        }
    }
}

#include "include/end.p4"
