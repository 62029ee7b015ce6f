// Expressions: arguments that overlap
#include "include/begin.p4"

void swap(inout bit<8> x, inout bit<8> y) {
    bit<8> old = x;
    x = y;
    y = old;
}

void overwrite(in bit<8> value, out bit<8> first, out bit<8> second) {
    first = value + 1;
    second = value + 2;
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    bit<8> shared = 5;
    action touch(inout bit<8> x) {
        shared = 9;
        x = x + 1;
    }
    apply {
        standard.egress_spec = 1;
        swap(hdr.data.a, hdr.data.b);
        overwrite(hdr.data.c[7:0], hdr.data.c[15:8], hdr.data.c[7:0]);
        touch(shared);
        hdr.data.d = (bit<32>) shared;
        overwrite(second = _, first = hdr.data.d[31:24], value = 0x10);
    }
}

#include "include/end.p4"
