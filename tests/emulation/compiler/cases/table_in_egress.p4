// Tables: tables in egress, and keys of standard metadata
#define OWN_EGRESS
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action to(bit<9> port) { standard.egress_spec = port; }
    table ways { key = { standard.ingress_port: exact; } actions = { to; NoAction; } }
    apply { ways.apply(); }
}

control CaseEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action rewrite(bit<8> value) { hdr.data.a = value; }
    table last { key = { standard.egress_port: exact; } actions = { rewrite; NoAction; } }
    apply { last.apply(); }
}

#include "include/end.p4"
