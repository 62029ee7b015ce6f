// Statements: return from controls, actions and functions
bit<8> grade(in bit<8> x) {
    if (x > 10) { return 3; }
    if (x > 5) { return 2; }
    return 1;
}
#include "include/begin.p4"

control Early(inout headers_t hdr) {
    apply {
        if (hdr.data.a > 10) { return; }
        hdr.data.c = 1;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Early() early;
    action maybe() {
        if (hdr.data.a > 5) { return; }
        hdr.data.d = 1;
    }
    apply {
        standard.egress_spec = 1;
        hdr.data.b = grade(hdr.data.a);
        early.apply(hdr);
        maybe();
    }
}

#include "include/end.p4"
