// Statements: exit in controls and actions ends ingress; egress still runs
#define OWN_EGRESS
#include "include/begin.p4"

control Inner(inout headers_t hdr) {
    apply {
        if (hdr.data.a == 2) { exit; }
        hdr.data.b = hdr.data.b + 1;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Inner() inner;
    action leave() { hdr.data.c = 1; exit; }
    apply {
        standard.egress_spec = 1;
        if (hdr.data.a == 1) { leave(); }
        inner.apply(hdr);
        hdr.data.b = hdr.data.b + 1;
    }
}

control CaseEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { hdr.data.d = 9; }
}

#include "include/end.p4"
