// Tables: hit and miss as conditions, in expressions and variables
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action set(bit<8> value) { hdr.data.b = value; }
    table first { key = { hdr.data.a: exact; } actions = { set; NoAction; } }
    table second { key = { hdr.data.a: exact; } actions = { set; NoAction; } }
    table third { key = { hdr.data.a: exact; } actions = { set; NoAction; } }
    apply {
        standard.egress_spec = 1;
        if (first.apply().hit) { hdr.data.c = 1; } else { hdr.data.c = 2; }
        bool missed = second.apply().miss;
        if (missed && third.apply().hit) { hdr.data.d = 3; }
    }
}

#include "include/end.p4"
