// Types: struct and header initialisers, by order and by name
struct inner_t { bit<8> x; bit<8> y; }
struct both_t { inner_t inner; bit<16> z; }
const both_t FIXED = { inner = { y = 2, x = 1 }, z = 0x0304 };
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        both_t made = { { hdr.data.a, hdr.data.b }, hdr.data.c };
        hdr.data = { a = made.inner.y, b = made.inner.x, d = 8w0 ++ FIXED.inner.x ++ FIXED.z, c = made.z };
    }
}

#include "include/end.p4"
