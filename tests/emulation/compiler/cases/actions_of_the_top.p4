// Controls: actions declared outside of controls, and actions that call actions
action bump(inout bit<8> x) { x = x + 1; }
action bump_twice(inout bit<8> x) { bump(x); bump(x); }
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action both(bit<8> limit) {
        bump_twice(hdr.data.a);
        if (hdr.data.a > limit) { bump(hdr.data.b); }
    }
    table rules { key = { hdr.data.c: exact; } actions = { both; bump(hdr.data.a); NoAction; } }
    apply { standard.egress_spec = 1; rules.apply(); }
}

#include "include/end.p4"
