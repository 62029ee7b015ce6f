// Expressions: int constants of any size
const int HUGE = (1 << 200) + 5;
const bit<16> LOW = (bit<16>) (HUGE & 0xffff);
const int DIVIDED = HUGE / (1 << 198);
const int NEGATIVE = -7;
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.a = DIVIDED;
        hdr.data.b = (bit<8>) (int<8>) NEGATIVE;
        hdr.data.c = LOW;
        hdr.data.d = (bit<32>) (HUGE % 1000) + 32w0xF000_0000;
    }
}

#include "include/end.p4"
