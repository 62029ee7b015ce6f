// Statements: for loops whose end depends on the packet
#define OWN_EGRESS
#include "include/begin.p4"

bit<16> power(in bit<16> base, in bit<8> exponent) {
    bit<16> result = 1;
    for (bit<8> i = 0; i < exponent; i = i + 1) { result = result * base; }
    return result;
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action add_up(bit<8> limit) {
        for (bit<8> i = 1; i <= limit; i += 1) {
            if (i == 3) { continue; }
            if (i == 6) { break; }
            hdr.data.d = hdr.data.d + (bit<32>) i;
        }
    }
    action count_pairs(bit<8> limit) {
        for (bit<8> i = 0; i < limit; i += 1) {
            for (bit<8> j = 0; j < limit; j += 1) { hdr.data.d = hdr.data.d + 1; }
        }
    }
    table sums {
        key = { hdr.data.a: exact; }
        actions = { add_up; count_pairs; NoAction; }
    }
    apply {
        standard.egress_spec = 1;
        sums.apply();
        hdr.data.c = power(3, hdr.data.b);
    }
}

control CaseEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        bit<8> left = hdr.data.b;
        for (bit<8> n = 0; left != 0; n += 1) {
            left = left & (left - 1);
            hdr.data.a = n + 1;
        }
    }
}

#include "include/end.p4"
