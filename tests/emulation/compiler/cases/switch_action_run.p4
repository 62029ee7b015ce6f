// Statements: switch on the action that a table has run
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action left() { hdr.data.b = 1; }
    action right(bit<8> x) { hdr.data.b = x; }
    action other() {}
    table ways {
        key = { hdr.data.a: exact; }
        actions = { left; right; other; NoAction; }
    }
    apply {
        standard.egress_spec = 1;
        switch (ways.apply().action_run) {
            left:
            right: { hdr.data.c = 0x00aa; }
            NoAction: { hdr.data.c = 0x00bb; }
            default: { hdr.data.c = 0x00cc; }
        }
        hdr.data.d = 1;
    }
}

#include "include/end.p4"
