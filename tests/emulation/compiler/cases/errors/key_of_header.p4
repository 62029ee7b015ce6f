// Tables: headers and structs as keys
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    table t { key = { hdr.data: exact; } actions = { NoAction; } }  // error: a key cannot have type data_t
    apply { t.apply(); }
}

#include "../include/end.p4"
