// Architecture: architectures other than v1model
#include <psa.p4>  // error: cannot find the file to include: psa.p4; v1model is the only architecture
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

#include "../include/end.p4"
