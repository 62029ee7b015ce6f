// Preprocessor: files that cannot be found
#include "nothing.p4"  // error: cannot find the file to include: nothing.p4; -I DIR searches a folder
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

#include "../include/end.p4"
