// Expressions: && and || evaluate their right side only where they need it
bool touch(inout bit<8> count) {
    count = count + 1;
    return true;
}
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (hdr.data.a == 1 && touch(hdr.data.b)) { hdr.data.c = 1; }
        if (hdr.data.a == 1 || touch(hdr.data.b)) { hdr.data.d = 1; }
    }
}

#include "include/end.p4"
