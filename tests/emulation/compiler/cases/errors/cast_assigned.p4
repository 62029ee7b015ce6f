// Statements: assignments to casts
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        ((bit<8>) hdr.data.a) = 1; // error: this cannot be assigned to
    }
}

#include "../include/end.p4"
