// Statements: tables in loops that are not unrolled
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    table t { key = { hdr.data.a: exact; } actions = { NoAction; } }
    apply { for (bit<8> i = 0; i < hdr.data.b; i = i + 1) { t.apply(); } }  // error: a table cannot be applied in an action or in a loop that is not unrolled
}

#include "../include/end.p4"
