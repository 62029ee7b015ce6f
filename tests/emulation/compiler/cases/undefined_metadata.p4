// Architecture: metadata and variables are 0 until they are written
struct inner_t { bit<16> x; bool y; }
#define METADATA bit<8> first; inner_t inner;
#define OWN_EGRESS
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.a = meta.first;
        hdr.data.c = meta.inner.x;
        if (!meta.inner.y) { hdr.data.b = 1; }
        bit<8> local;
        hdr.data.d = (bit<32>) local;
        meta.first = 0xff;
        local = 0xff;
    }
}

control CaseEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { hdr.data.b = hdr.data.b + meta.first; }
}

#include "include/end.p4"
