// Tables: support_timeout
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action set(bit<8> value) { hdr.data.b = value; }
    table flows {
        key = { hdr.data.a: exact; }
        actions = { set; NoAction; }
        support_timeout = true;
    }
    apply { standard.egress_spec = 1; flows.apply(); }
}

#include "include/end.p4"
