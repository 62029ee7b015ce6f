// Tables: optional matches
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action set(bit<8> value) { hdr.data.b = value; }
    table rules {
        key = { hdr.data.a: optional; hdr.data.c: optional; }
        actions = { set; NoAction; }
    }
    apply { standard.egress_spec = 1; rules.apply(); }
}

#include "include/end.p4"
