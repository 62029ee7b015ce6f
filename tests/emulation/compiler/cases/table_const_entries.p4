// Tables: const entries of every match kind, tried in their order
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action set(bit<8> value) { hdr.data.b = value; }
    table rules {
        key = { hdr.data.a: ternary; hdr.data.c: range; hdr.data.d: optional; }
        actions = { set; NoAction; }
        const entries = {
            (1, 5, 9): set(1);
            (0x10 &&& 0xf0, 100 .. 200, _): set(2);
            (0x11, _, _): set(3);
            (_, 7, default): set(4);
        }
    }
    table longest {
        key = { hdr.data.d: lpm; }
        actions = { set; NoAction; }
        const entries = {
            0x0a000000 &&& 0xff000000: set(0x61);
            0x0a0b0000 &&& 0xffff0000: set(0x62);
            0x0a0b0c0d: set(0x63);
        }
    }
    apply {
        standard.egress_spec = 1;
        if (!rules.apply().hit) { longest.apply(); }
    }
}

#include "include/end.p4"
