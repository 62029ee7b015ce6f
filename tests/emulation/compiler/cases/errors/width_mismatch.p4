// Expressions: operands of different widths
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { hdr.data.c = hdr.data.a + hdr.data.c; }  // error: '+' cannot be applied to bit<8> and bit<16>
}

#include "../include/end.p4"
