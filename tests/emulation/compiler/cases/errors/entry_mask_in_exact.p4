// Tables: masks in entries for exact keys
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    table t {
        key = { hdr.data.a: exact; }
        actions = { NoAction; }
        const entries = {
            1 &&& 3: NoAction();  // error: a key of kind 'exact' cannot match this
        }
    }
    apply { t.apply(); }
}

#include "../include/end.p4"
