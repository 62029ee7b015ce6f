// Controls: actions with parameters of every direction
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action helper(inout bit<8> x, bit<8> by) { x = x + by; }
    action set(out bit<8> x, bit<8> value) { x = value; }
    action decide(bit<8> limit, bit<16> mark) {
        standard.egress_spec = 1;
        if (hdr.data.a > limit) {
            hdr.data.c = mark;
            if (hdr.data.a == 0xff) { exit; }
            helper(hdr.data.b, 1);
            return;
        } else {
            hdr.data.b = 0x20;
        }
        hdr.data.d = 1;
    }
    table first {
        key = { hdr.data.a: ternary; }
        actions = { decide; }
        default_action = decide(0x10, 0xabcd);
    }
    table second {
        actions = { set(hdr.data.d[7:0]); }
        const default_action = set(7);
    }
    table third {
        key = { hdr.data.a: exact; }
        actions = { set(hdr.data.b); NoAction; }
        const entries = { 0x30: set(0x99); }
    }
    apply {
        first.apply();
        second.apply();
        third.apply();
    }
}

#include "include/end.p4"
