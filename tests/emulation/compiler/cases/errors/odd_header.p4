// Types: headers that are not whole bytes
#define HEADERS odd_t odd; data_t data;
header odd_t { bit<7> x; }  // error: header odd_t has 7 bits, but the target needs whole bytes
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

#include "../include/end.p4"
