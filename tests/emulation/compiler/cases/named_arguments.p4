// Expressions: named and default arguments of functions, actions and controls
bit<8> join(in bit<8> high, in bit<8> low = 5) { return (high << 4) | low; }
control Add(inout bit<8> value, in bit<8> by) { apply { value = value + by; } }
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Add() add;
    action store(in bit<8> first, in bit<8> second) { hdr.data.c = first ++ second; }
    apply {
        standard.egress_spec = 1;
        hdr.data.a = join(low = 2, high = 1);
        hdr.data.b = join(high = 3);
        store(second = 0x22, first = 0x11);
        add.apply(by = 0x10, value = hdr.data.a);
    }
}

#include "include/end.p4"
