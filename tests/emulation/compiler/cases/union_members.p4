// Types: setting a member of a union invalidates the others
#define HEADERS data_t data; choice_t choice;
header short_t { bit<8> value; }
header long_t { bit<16> value; }
header_union choice_t { short_t short; long_t long; }
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.choice.short = { 0x11 };
        if (hdr.data.a == 1) { hdr.choice.long.setValid(); hdr.choice.long.value = 0x2222; }
        if (hdr.data.a == 2) { hdr.choice.short.setInvalid(); }
        if (hdr.choice.isValid()) { hdr.data.b = hdr.choice.short.isValid() ? 8w1 : 8w2; }
    }
}

#include "include/end.p4"
