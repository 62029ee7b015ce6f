// Tables: two entries that match the same
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    table t {
        key = { hdr.data.a: exact; }
        actions = { NoAction; }
        const entries = {
            1: NoAction();
            1: NoAction();  // error: this entry matches the same as the one of line 9
        }
    }
    apply { t.apply(); }
}

#include "../include/end.p4"
