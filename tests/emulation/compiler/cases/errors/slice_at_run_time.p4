// Expressions: slices at run-time positions
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { hdr.data.a = hdr.data.d[hdr.data.b + 7:hdr.data.b]; }  // error: the upper bound of a slice must be known at compile time
}

#include "../include/end.p4"
