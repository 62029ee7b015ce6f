// Statements: assignments to a choice
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        (true ? hdr.data.a : hdr.data.b) = 1; // error: this cannot be assigned to
    }
}

#include "../include/end.p4"
