// Tables: actions whose directed parameters the table binds
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action copy(in bit<8> from, inout bit<8> to, bit<8> extra) { to = from + extra; }
    table moves {
        key = { hdr.data.a: exact; }
        actions = { copy(hdr.data.a, hdr.data.b); NoAction; }
    }
    table more {
        key = { hdr.data.a: exact; }
        actions = { copy(hdr.data.b, hdr.data.c[7:0]); NoAction; }
        default_action = copy(hdr.data.b, hdr.data.c[7:0], 1);
    }
    apply { standard.egress_spec = 1; moves.apply(); more.apply(); }
}

#include "include/end.p4"
