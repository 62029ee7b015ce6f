// Tables: @defaultonly and @tableonly actions
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action set(bit<8> value) { hdr.data.b = value; }
    action none() { hdr.data.c = 0xffff; }
    table rules {
        key = { hdr.data.a: exact; }
        actions = { @tableonly set; @defaultonly none; }
        const default_action = none();
    }
    apply { standard.egress_spec = 1; rules.apply(); }
}

#include "include/end.p4"
