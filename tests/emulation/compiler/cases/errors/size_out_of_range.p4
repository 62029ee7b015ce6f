// Architecture: sizes of more than 31 bits
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<8>>(4294967295) cells;  // error: 'size' must be between 0 and 2147483647, found 4294967295
    apply {}
}

#include "../include/end.p4"
