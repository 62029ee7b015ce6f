// Tables: tables without actions
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    table t { key = { hdr.data.a: exact; } }  // error: table t has no 'actions'
    apply { t.apply(); }
}

#include "../include/end.p4"
