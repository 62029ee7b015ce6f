// Expressions: multiplication, and division by powers of two
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.c = (bit<16>) hdr.data.a * (bit<16>) hdr.data.b;
        hdr.data.d = (bit<32>) (hdr.data.a * hdr.data.b) + ((bit<32>) hdr.data.a / 4 << 16) + ((bit<32>) hdr.data.b % 8 << 24);
    }
}

#include "include/end.p4"
