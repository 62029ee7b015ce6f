// Statements: out arguments that are casts
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        random((bit<8>) hdr.data.a, 8w1, 8w2); // error: the argument for out parameter 'result' must be writable
    }
}

#include "../include/end.p4"
