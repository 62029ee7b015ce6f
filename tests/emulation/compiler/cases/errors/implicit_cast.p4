// Expressions: implicit casts between numbers
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { hdr.data.a = hdr.data.c; }  // error: expected bit<8>, found bit<16>
}

#include "../include/end.p4"
