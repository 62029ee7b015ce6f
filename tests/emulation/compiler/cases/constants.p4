// Expressions: constants and constant folding
#include "include/begin.p4"

const int BIG = 1 << 100;
const bit<32> LOW = (bit<32>) (BIG - 1);
const bit<16> MIXED = 0b1010_1010 + 0o17 + 16w0xff00 - 0d10;
const bool FLAG = BIG > 5 && !false;
const int NEGATIVE = -7;

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    const bit<8> LOCAL = 8w200 + 100;
    apply {
        standard.egress_spec = FLAG ? 9w1 : 9w2;
        hdr.data.d = LOW;
        hdr.data.c = MIXED;
        hdr.data.b = LOCAL;
        hdr.data.a = (bit<8>) (NEGATIVE * -3 / 2 % 7);
    }
}

#include "include/end.p4"
