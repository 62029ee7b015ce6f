// Types: varbit variables that are not whole bytes
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    varbit<12> x;  // error: the target stores whole bytes, not varbit<12>
    apply {}
}

#include "../include/end.p4"
