// Tables: whether another table hits as a key
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action mark(bit<8> value) { hdr.data.b = value; }
    table first { key = { hdr.data.a: exact; } actions = { NoAction; } const entries = { 5: NoAction(); } }
    table second {
        key = { first.apply().hit: exact @name("known"); hdr.data.c: exact; }
        actions = { mark; NoAction; }
        const entries = { (true, 1): mark(10); (false, 1): mark(20); }
    }
    apply { standard.egress_spec = 1; second.apply(); }
}

#include "include/end.p4"
