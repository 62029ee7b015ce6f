// Statements: inout and out arguments are copied in and out
void exchange(inout bit<8> x, inout bit<8> y) { bit<8> t = x; x = y; y = t; }
void make(out bit<8> x, in bit<8> y) { x = y + 1; }
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        exchange(hdr.data.a, hdr.data.b);
        make(hdr.data.a, hdr.data.a);
        make(hdr.data.c[15:8], hdr.data.b);
        exchange(hdr.data.d[7:0], hdr.data.d[15:8]);
    }
}

#include "include/end.p4"
