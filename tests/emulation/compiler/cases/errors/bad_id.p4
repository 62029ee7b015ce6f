// Annotations: @id of another kind of object
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @id(0x01000001) table t { key = { hdr.data.a: exact; } actions = { NoAction; } }  // error: the @id of CaseIngress.t has the wrong 8-bit prefix for a table
    apply { t.apply(); }
}

#include "../include/end.p4"
