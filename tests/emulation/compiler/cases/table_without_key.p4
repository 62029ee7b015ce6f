// Tables: tables without keys run their default action
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action set(bit<8> value) { hdr.data.b = value; }
    table always { actions = { set; NoAction; } default_action = set(3); }
    table never { actions = { set; } }
    apply {
        standard.egress_spec = 1;
        always.apply();
        if (never.apply().hit) { hdr.data.c = 1; }
    }
}

#include "include/end.p4"
