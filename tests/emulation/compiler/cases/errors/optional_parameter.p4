// Controls: @optional parameters of what has a body
#include "../include/begin.p4"

bit<8> twice(in bit<8> value,
             @optional in bit<8> times) {  // error: only what has no body can have @optional parameters
    return value;
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { hdr.data.a = twice(hdr.data.a); }
}

#include "../include/end.p4"
