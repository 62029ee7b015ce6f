// Expressions: comparison of headers, also with an invalid one
#define HEADERS data_t data; data_t other;
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        data_t copy = hdr.data;
        if (hdr.other == copy) { hdr.data.b = 1; }
        hdr.other = copy;
        if (hdr.other == copy) { hdr.data.c = 1; }
        hdr.other.d = ~copy.d;
        if (hdr.other != copy) { hdr.data.d = 1; }
        hdr.other = (data_t) {#};
        copy.setInvalid();
        if (hdr.other == copy && !hdr.other.isValid()) { hdr.data.a = 7; }
    }
}

#include "include/end.p4"
