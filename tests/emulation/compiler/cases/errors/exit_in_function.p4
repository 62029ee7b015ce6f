// Statements: exit in functions
#include "../include/begin.p4"

void stop() { exit; }  // error: 'exit' is allowed in controls and actions only

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { stop(); }
}

#include "../include/end.p4"
