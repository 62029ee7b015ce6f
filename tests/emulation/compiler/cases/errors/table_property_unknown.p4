// Tables: properties that v1model does not have
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    table t {
        key = { hdr.data.a: exact; }
        actions = { NoAction; }
        colour = 3;  // error: table property 'colour' is not supported
    }
    apply { t.apply(); }
}

#include "../include/end.p4"
