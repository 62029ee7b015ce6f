// Statements: exit copies out and inout arguments back before it ends the control
#define HEADERS data_t data;
#include "include/begin.p4"

bit<8> add(inout bit<8> x, in bit<8> by) { x = x + by; return x; }

control Inner(inout bit<8> x, inout bit<8> y, in bit<8> way) {
    action leave(inout bit<8> z, in bit<8> by) {
        z = z + by;
        x = x + 1;
        if (by == 1) { exit; }
        z = z + 0x40;
    }
    action left() { x = x + 2; exit; }
    action left_with(inout bit<4> z) { z = z + 1; exit; }
    table stay {
        key = { way : exact; }
        actions = { left; left_with(y[7:4]); NoAction; }
        const entries = { 3 : left(); 4 : left_with(y[7:4]); }
        default_action = NoAction();
    }
    apply {
        y = y + 1;
        if (way == 2) { exit; }
        stay.apply();
        leave(x, add(x, 0) == 0 ? 8w1 : way);
        y = y + 0x10;
    }
}

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Inner() inner;
    apply {
        standard.egress_spec = 1;
        inner.apply(hdr.data.c[15:8], hdr.data.c[7:0], hdr.data.a);
        hdr.data.b = 0xff;
    }
}

#include "include/end.p4"
