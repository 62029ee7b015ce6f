// Tables: longest prefix match with an exact key beside it
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action to(bit<16> value) { hdr.data.c = value; }
    table routes {
        key = { hdr.data.a: exact; hdr.data.d: lpm; }
        actions = { to; NoAction; }
        const default_action = to(0xffff);
    }
    apply { standard.egress_spec = 1; routes.apply(); }
}

#include "include/end.p4"
