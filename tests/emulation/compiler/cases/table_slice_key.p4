// Tables: slices as keys, also up to the top bit
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action mark(bit<8> value) { hdr.data.b = value; }
    table top { key = { hdr.data.d[31:16]: exact @name("high"); hdr.data.d[7:0]: lpm @name("low"); } actions = { mark; NoAction; } }
    table middle { key = { hdr.data.c[11:4]: ternary @name("middle"); } actions = { mark; NoAction; } }
    apply { standard.egress_spec = 1; if (!top.apply().hit) { middle.apply(); } }
}

#include "include/end.p4"
