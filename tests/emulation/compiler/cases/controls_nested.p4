// Controls: controls within controls, each instance with tables of its own
#include "include/begin.p4"

control Leaf(inout data_t data)(bit<8> mark) {
    action set(bit<8> value) { data.b = data.b + value; }
    table rules { key = { data.a: exact; } actions = { set; NoAction; } default_action = set(mark); }
    apply { rules.apply(); }
}
control Middle(inout data_t data) {
    Leaf(1) left;
    Leaf(2) right;
    apply { left.apply(data); right.apply(data); }
}
control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Middle() middle;
    apply { standard.egress_spec = 1; middle.apply(hdr.data); }
}

#include "include/end.p4"
