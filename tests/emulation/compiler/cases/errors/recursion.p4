// Statements: recursive functions
#include "../include/begin.p4"

bit<8> again(in bit<8> x) { return again(x); }  // error: 'again' is not declared

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { hdr.data.a = again(hdr.data.a); }
}

#include "../include/end.p4"
