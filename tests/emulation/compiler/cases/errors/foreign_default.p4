// Tables: default actions that are not in the list
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action other() {}
    table t { key = { hdr.data.a: exact; } actions = { NoAction; } default_action = other(); }  // error: action 'other' is not in the table's list of actions
    apply { t.apply(); }
}

#include "../include/end.p4"
