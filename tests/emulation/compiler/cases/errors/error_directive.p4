// Preprocessor: #error
#error stop here  // error: #error stop here
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

#include "../include/end.p4"
