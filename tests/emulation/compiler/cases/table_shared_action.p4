// Tables: one action in several tables, and called directly
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action add_to(bit<8> value) { hdr.data.b = hdr.data.b + value; }
    table first { key = { hdr.data.a: exact; } actions = { add_to; } default_action = add_to(1); }
    table second { key = { hdr.data.c: exact; } actions = { add_to; } default_action = add_to(2); }
    apply {
        standard.egress_spec = 1;
        first.apply();
        second.apply();
        add_to(4);
    }
}

#include "include/end.p4"
