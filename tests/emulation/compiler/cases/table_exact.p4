// Tables: several exact keys; missing packets run the default action
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action set(bit<16> value) { hdr.data.c = value; }
    action miss(bit<16> value) { hdr.data.c = value; }
    table pairs {
        key = { hdr.data.a: exact; hdr.data.b: exact; }
        actions = { set; miss; }
        default_action = miss(0xdead);
        size = 16;
    }
    apply { standard.egress_spec = 1; pairs.apply(); }
}

#include "include/end.p4"
