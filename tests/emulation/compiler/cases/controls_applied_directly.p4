// Controls: application of a control type, and of one instance twice
control Increment(inout bit<8> x, in bit<8> by) { apply { x = x + by; } }
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Increment() increment;
    apply {
        standard.egress_spec = 1;
        Increment.apply(hdr.data.a, 1);
        increment.apply(hdr.data.a, 2);
        increment.apply(hdr.data.b, hdr.data.a);
    }
}

#include "include/end.p4"
