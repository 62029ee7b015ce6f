// Architecture: clone3, resubmit, recirculate and mark_to_drop as they were before 2021
#define METADATA bit<8> kept; bit<8> lost;
#define OWN_EGRESS
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (hdr.data.a == 1) { meta.kept = 0x66; clone3(CloneType.I2E, 5, { meta.kept }); }
        if (hdr.data.a == 2 && standard.instance_type == 0) { meta.kept = 0x55; meta.lost = 1; resubmit({ meta.kept }); }
        if (hdr.data.a == 3) { mark_to_drop(); }
        hdr.data.b = meta.kept;
        hdr.data.c = (bit<16>) meta.lost;
    }
}

control CaseEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (hdr.data.a == 4) { hdr.data.a = 5; meta.kept = 0x44; recirculate({ meta.kept }); }
        hdr.data.d = (bit<32>) meta.kept;
    }
}

#include "include/end.p4"
