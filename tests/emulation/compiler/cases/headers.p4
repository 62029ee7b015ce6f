// Types: setValid, setInvalid and copies of headers
#define HEADERS data_t data; data_t copy; data_t extra;
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.copy = hdr.data;
        hdr.copy.a = 0xee;
        if (!hdr.extra.isValid() && hdr.copy.isValid()) { hdr.data.b = 1; }
        if (hdr.copy == hdr.data) { hdr.data.c = 0xdead; }
        hdr.copy = hdr.data;
        if (hdr.copy == hdr.data) { hdr.data.c = 0xbeef; }
        data_t scratch = { 1, 2, 3, 4 };
        hdr.extra = scratch;
        hdr.copy.setInvalid();
        hdr.extra.d = hdr.extra.d + 1;
        data_t nothing;
        if (nothing.isValid()) { hdr.data.d = 0xffffffff; }
    }
}

#include "include/end.p4"
