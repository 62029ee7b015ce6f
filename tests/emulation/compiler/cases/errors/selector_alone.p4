// Tables: selector keys without an action selector
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    table t { key = { hdr.data.a: exact; hdr.data.b: selector; } actions = { NoAction; } }  // error: a selector key needs the property 'implementation'
    apply { t.apply(); }
}

#include "../include/end.p4"
