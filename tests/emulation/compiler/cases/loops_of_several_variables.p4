// Statements: for loops with several variables, annotations, and lists written with their type
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        for (bit<8> i = 0, @name("other") bit<8> j = hdr.data.a; i < 3; i = i + 1, j = j + 2) {
            hdr.data.b = hdr.data.b + j;
        }
        for (@name("value") bit<16> x in (list<bit<16>>) { 1, hdr.data.c, 0x100 }) {
            hdr.data.d = hdr.data.d + (bit<32>) x;
            x = 0;
        }
        for (bit<8> y in 1 .. 3) {
            y = y + hdr.data.a;
            hdr.data.c = hdr.data.c + (bit<16>) y;
        }
    }
}

#include "include/end.p4"
