// Expressions: comparison of signed and unsigned numbers
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { if ((int<8>) hdr.data.a < hdr.data.b) { hdr.data.a = 0; } }  // error: '<' cannot be applied to int<8> and bit<8>
}

#include "../include/end.p4"
