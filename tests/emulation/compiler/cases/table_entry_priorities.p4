// Tables: entries with priorities, largest or smallest first; fixed, also without const
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action set(bit<8> value) { hdr.data.b = value; }
    action mark(bit<16> value) { hdr.data.d[15:0] = value; }
    table largest {
        key = { hdr.data.a: ternary; }
        actions = { set; NoAction; }
        priority_delta = 10;
        entries = {
            const priority = 20: 0x10 &&& 0xf0: set(1);
            0x11: set(2);
            priority = 100: 0x12: set(3);
        }
    }
    table smallest {
        key = { hdr.data.a: ternary; }
        actions = { mark; NoAction; }
        largest_priority_wins = false;
        const entries = {
            priority = 5: 0x10 &&& 0xf0: mark(1);
            priority = 2: 0x11: mark(2);
            0x12: mark(3);
        }
    }
    apply { standard.egress_spec = 1; largest.apply(); smallest.apply(); }
}

#include "include/end.p4"
