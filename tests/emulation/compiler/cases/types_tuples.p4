// Types: tuples, their elements and comparison
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        tuple<bit<8>, bit<16>> pair = { hdr.data.a, hdr.data.c };
        if (pair == { 8w1, 16w2 }) { hdr.data.b = 1; }
        hdr.data.d = 8w0 ++ pair[0] ++ pair[1];
        pair[0] = 0x77;
        hdr.data.a = pair[0];
    }
}

#include "include/end.p4"
