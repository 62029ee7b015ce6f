// Preprocessor: comments in macros, and names continued on the next line
#define FIRST 1 // the rest of a line that uses it still counts
#define SECOND /* a comment
of two lines */ 2
#define SUM_OF_\
BOTH (FIRST + SECOND)
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = FIRST; hdr.data.a = SUM_OF_BOTH; hdr.data.b = SECOND; hdr.data.c = 9; }
}

#include "include/end.p4"
