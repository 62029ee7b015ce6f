// Architecture: action profiles
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action set(bit<8> value) { hdr.data.b = value; }
    table rules {
        key = { hdr.data.a: exact; }
        actions = { set; NoAction; }
        implementation = action_profile(8);
    }
    // Without entries: no packet may meet its action, which is the JSON's first.
    table others {
        key = { hdr.data.a: exact; }
        actions = { set; NoAction; }
        implementation = action_profile(8);
    }
    apply {
        standard.egress_spec = 1;
        if (rules.apply().hit) { hdr.data.c = 1; }
        others.apply();
    }
}

#include "include/end.p4"
