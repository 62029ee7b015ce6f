// Types: variables of type string
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { string text = "no"; }  // error: a variable cannot have type string
}

#include "../include/end.p4"
