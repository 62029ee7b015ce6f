// Expressions: functions
#include "include/begin.p4"

bit<8> clamp(in bit<8> x, in bit<8> limit) {
    if (x > limit) {
        if (x == 0xff) { return 0; }
        return limit;
    }
    return x;
}

T first<T>(in T x, in T y) { return x; }

bool count(inout bit<8> n) {
    n = n + 1;
    return n > 100;
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.data.a = clamp(hdr.data.a, 50) + clamp(7, 5);
        hdr.data.c = first(hdr.data.c, 3) + first<bit<16>>(1, 2);
        bit<8> n = 0;
        if (hdr.data.b == 0 && count(n)) { hdr.data.d = 1; }
        if (hdr.data.b == 0 || count(n)) { hdr.data.d = 2; }
        hdr.data.b = n;
    }
}

#include "include/end.p4"
