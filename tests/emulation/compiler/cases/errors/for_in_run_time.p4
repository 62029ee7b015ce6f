// Statements: for loops over ranges that depend on the packet
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { for (bit<8> x in 1 .. hdr.data.a) { hdr.data.b = x; } }  // error: the range of a loop must be known at compile time
}

#include "../include/end.p4"
