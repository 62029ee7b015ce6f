// Tables: tables applied in actions
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    table t { key = { hdr.data.a: exact; } actions = { NoAction; } }
    action run() { t.apply(); }  // error: tables can be applied in the apply block of a control only
    apply { run(); }
}

#include "../include/end.p4"
