// Tables: expressions as keys, named by @name
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action set(bit<8> value) { hdr.data.b = value; }
    table sums {
        key = {
            hdr.data.a + 1: exact @name("next");
            hdr.data.c[11:4]: exact;
            hdr.data.d & 0xff: exact @name("low");
        }
        actions = { set; NoAction; }
    }
    apply { standard.egress_spec = 1; sums.apply(); }
}

#include "include/end.p4"
