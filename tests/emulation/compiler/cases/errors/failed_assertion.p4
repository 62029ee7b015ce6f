// Architecture: static_assert of what is false
#include "../include/begin.p4"

const bool OK = static_assert(1 > 2, "one is not more than two");  // error: static_assert: one is not more than two

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

#include "../include/end.p4"
