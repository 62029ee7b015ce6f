// Expressions: explicit casts between bit, int, bool and enums
enum bit<4> Nibble { Low = 1, High = 8 }
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<1> one = (bit<1>) (hdr.data.a == 1);
        if ((bool) one) { hdr.data.b = 1; }
        hdr.data.c = (bit<16>) (bit<4>) Nibble.High + (bit<16>) (bit<12>) 0xabc;
        hdr.data.d = (bit<32>) (int<32>) (int<8>) hdr.data.a;
    }
}

#include "include/end.p4"
