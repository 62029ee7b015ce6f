// Architecture: registers of structs
struct two_t { bit<8> x; bit<8> y; }
#include "../include/begin.p4"

register<two_t>(4) cells;  // error: the target has registers of bit<> and int<> only

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

#include "../include/end.p4"
