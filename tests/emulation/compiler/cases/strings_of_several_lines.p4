// Preprocessor: strings of several lines, with comments and directives in them
#include "include/begin.p4"

@restriction("
    // not a comment, but part of the string
    a != 0;
#ifdef NOTHING
    b == 0; // neither is this
#endif
") @other("one line")
control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    table t {
        key = { hdr.data.a: exact @name("first
second"); }
        actions = { NoAction; }
    }
    apply { standard.egress_spec = 1; t.apply(); hdr.data.b = 7; }
}

#include "include/end.p4"
