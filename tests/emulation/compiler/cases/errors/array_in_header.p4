// Types: arrays of numbers
#define HEADERS some_t some; data_t data;
header some_t { bit<8>[4] x; }  // error: only headers and unions form stacks, not bit<8>
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

#include "../include/end.p4"
