// Expressions: shifts of an int by a run-time value
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { hdr.data.a = 1 << hdr.data.b; }  // error: the left side of a shift by a run-time value needs a width
}

#include "../include/end.p4"
