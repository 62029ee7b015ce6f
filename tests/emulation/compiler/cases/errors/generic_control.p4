// Controls: generic controls
#include "../include/begin.p4"

control Inner<T>(inout T x) { apply {} }  // error: a control with a body cannot have type parameters

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

#include "../include/end.p4"
