// Controls: controls with constructor parameters
#include "include/begin.p4"

control Add(inout bit<8> value, in bit<8> by)(bit<8> times) {
    const bit<8> DOUBLE = times * 2;
    bit<8> amount = by;
    action add(bit<8> extra) { value = value + amount + extra; }
    table step {
        actions = { add; }
        const default_action = add(DOUBLE);
    }
    apply {
        if (value == 0xff) { return; }
        step.apply();
    }
}

control Middle(inout headers_t hdr) {
    Add(1) one;
    Add(10) ten;
    apply {
        one.apply(hdr.data.a, 1);
        ten.apply(hdr.data.b, hdr.data.a);
    }
}

control Direct(inout bit<16> c) {
    apply { c = c + 1; }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Middle() middle;
    apply {
        standard.egress_spec = 1;
        middle.apply(hdr);
        Direct.apply(hdr.data.c);
        Direct.apply(hdr.data.c);
    }
}

#include "include/end.p4"
