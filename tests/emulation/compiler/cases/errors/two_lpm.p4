// Tables: two lpm keys
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    table t { key = { hdr.data.a: lpm; hdr.data.b: lpm; } actions = { NoAction; } }  // error: a table can have one lpm key only
    apply { t.apply(); }
}

#include "../include/end.p4"
