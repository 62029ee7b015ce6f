// Statements: hit, miss and switch on action_run
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action one() { hdr.data.b = 1; }
    action two(bit<8> value) { hdr.data.b = value; }
    action three() { hdr.data.b = 3; }
    table chosen {
        key = { hdr.data.a: exact; }
        actions = { one; two; three; NoAction; }
        const entries = {
            1: one();
            2: two(0x22);
            3: three();
        }
    }
    table known { key = { hdr.data.c: exact; } actions = { NoAction; } const entries = { 7: NoAction(); } }
    table other { key = { hdr.data.d: exact; } actions = { NoAction; } const entries = { 7: NoAction(); } }
    table last { key = { hdr.data.d: exact; } actions = { NoAction; } const entries = { 8: NoAction(); } }
    apply {
        standard.egress_spec = 1;
        switch (chosen.apply().action_run) {
            one:
            two: { hdr.data.a = 0xa0; }
            three: { hdr.data.a = 0xa3; if (hdr.data.c == 9) { exit; } }
            default: { hdr.data.a = 0xad; }
        }
        if (known.apply().hit && !other.apply().hit) {
            hdr.data.c = 0xbeef;
        } else if (!last.apply().miss) {
            hdr.data.c = 0xcafe;
        }
    }
}

#include "include/end.p4"
