// Controls: controls given to constructors
control Step(inout bit<8> x);
control Double(inout bit<8> x) { apply { x = x << 1; } }
control Increment(inout bit<8> x)(bit<8> by) { apply { x = x + by; } }
control Twice(inout bit<8> x)(Step step) { apply { step.apply(x); step.apply(x); } }
control Both(inout bit<8> x)(Step first, Step second) {
    Twice(first) twice;
    apply { twice.apply(x); second.apply(x); }
}
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Double() double;
    Increment(3) increment;
    Twice(double) first;
    Both(increment, double) second;
    apply {
        standard.egress_spec = 1;
        first.apply(hdr.data.a);
        second.apply(hdr.data.b);
    }
}

#include "include/end.p4"
