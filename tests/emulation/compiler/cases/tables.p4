// Tables: exact, lpm and ternary keys
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action mark(bit<8> value) { hdr.data.b = value; }
    action port(bit<9> to) { standard.egress_spec = to; }
    action add(bit<32> value) { hdr.data.d = hdr.data.d + value; }
    table exact_table {
        key = { hdr.data.a: exact; hdr.data.isValid(): exact; }
        actions = { mark; NoAction; }
        size = 4;
        default_action = mark(0xdd);
    }
    table lpm_table {
        key = { hdr.data.d: lpm; }
        actions = { port; }
        const default_action = port(1);
    }
    table ternary_table {
        key = { hdr.data.c: ternary; hdr.data.a[3:0]: ternary @name("low"); }
        actions = { add; @defaultonly NoAction; }
    }
    table range_table {
        key = { hdr.data.a: range; }
        actions = { add; @defaultonly NoAction; }
    }
    table optional_table {
        key = { hdr.data.a: optional; hdr.data.b: optional; }
        actions = { add; @defaultonly NoAction; }
        const entries = {
            (1, _): add(0x100);
            (_, 0x22): add(0x200);
        }
    }
    apply {
        exact_table.apply();
        lpm_table.apply();
        ternary_table.apply();
        range_table.apply();
        optional_table.apply();
    }
}

#include "include/end.p4"
