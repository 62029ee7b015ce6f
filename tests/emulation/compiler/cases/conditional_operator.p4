// Expressions: ?: evaluates one side only
bit<8> take(inout bit<8> from) {
    from = from - 1;
    return from;
}
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.c = (bit<16>) (hdr.data.a > 5 ? take(hdr.data.a) : hdr.data.a > 2 ? take(hdr.data.b) : 8w0);
    }
}

#include "include/end.p4"
