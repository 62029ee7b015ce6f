// Expressions: saturating addition and subtraction at the ends of their range
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        int<8> x = (int<8>) hdr.data.a;
        int<8> y = (int<8>) hdr.data.b;
        hdr.data.c = (hdr.data.a |+| hdr.data.b) ++ (hdr.data.a |-| hdr.data.b);
        hdr.data.d = (bit<8>) (x |+| y) ++ (bit<8>) (x |-| y) ++ (16w0xfffe |+| 16w10);
    }
}

#include "include/end.p4"
