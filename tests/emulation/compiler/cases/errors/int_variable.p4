// Types: variables of type int
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { int x = 5; }  // error: a variable cannot have type int
}

#include "../include/end.p4"
