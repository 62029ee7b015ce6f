// Tables: selector keys without an action selector, which match nothing
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action mark(bit<8> value) { hdr.data.c[7:0] = value; }
    table t { key = { hdr.data.a: exact; hdr.data.b: selector; } actions = { mark; NoAction; } }
    apply { standard.egress_spec = 1; t.apply(); }
}

#include "include/end.p4"
