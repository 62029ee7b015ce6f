// Tables: entries with priorities of which the first has none
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    table t {
        key = { hdr.data.a: ternary; }
        actions = { NoAction; }
        entries = {
            1: NoAction();  // error: the first entry needs a priority, since others have one
            priority = 5: 2: NoAction();
        }
    }
    apply { t.apply(); }
}

#include "../include/end.p4"
