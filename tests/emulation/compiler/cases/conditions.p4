// Expressions: boolean operators and bool variables
#define METADATA bool seen;
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    bool flag = hdr.data.a > 3;
    table by_flag {
        key = { flag: exact; meta.seen: exact; }
        actions = { NoAction; }
        const entries = { (true, false): NoAction(); }
    }
    apply {
        standard.egress_spec = 1;
        bool both = flag && hdr.data.b != 0;
        meta.seen = both || !flag;
        hdr.data.c = (bit<16>) (both ? 8w1 : flag ? 8w2 : 8w3);
        if (by_flag.apply().hit) { hdr.data.d = 1; }
        hdr.data.b = (bit<8>) (bit<1>) meta.seen;
        if ((bool) hdr.data.a[0:0]) { hdr.data.a = hdr.data.a ^ 0xff; }
    }
}

#include "include/end.p4"
