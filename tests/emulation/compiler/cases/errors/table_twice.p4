// Tables: a table applied at two places
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    table t { key = { hdr.data.a: exact; } actions = { NoAction; } }
    apply {
        t.apply();
        hdr.data.b = 1;
        t.apply();  // error: table 't' is applied more than once, which the target cannot do
    }
}

#include "../include/end.p4"
