// Tables: range matches
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action set(bit<8> value) { hdr.data.b = value; }
    table ports {
        key = { hdr.data.c: range; hdr.data.a: exact; }
        actions = { set; NoAction; }
    }
    apply { standard.egress_spec = 1; ports.apply(); }
}

#include "include/end.p4"
