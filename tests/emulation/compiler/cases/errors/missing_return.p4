// Statements: functions that can end without a value
#include "../include/begin.p4"

bit<8> maybe(in bit<8> x) { if (x == 1) { return 2; } }  // error: function 'maybe' can end without returning a value

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { hdr.data.a = maybe(hdr.data.a); }
}

#include "../include/end.p4"
