// Tables: computed keys without @name
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    table t { key = { hdr.data.a + 1: exact; } actions = { NoAction; } }  // error: this key is an expression and needs an annotation @name("...")
    apply { t.apply(); }
}

#include "../include/end.p4"
