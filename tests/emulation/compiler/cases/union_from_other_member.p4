// Types: a member of a union that is assigned what another member holds
#define HEADERS data_t data; either_t either;
header one_t { bit<8> x; bit<8> y; }
header two_t { bit<8> p; bit<8> q; }
header_union either_t { one_t one; two_t two; }
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.either.one = { hdr.data.a, hdr.data.b };
        // The list is evaluated before the assignment makes the other member invalid.
        hdr.either.two = { hdr.either.one.y, hdr.either.one.isValid() ? hdr.either.one.x : 8w0xee };
        hdr.data.c[0:0] = (bit<1>) hdr.either.one.isValid();
    }
}

#include "include/end.p4"
