// Architecture: log_msg with more or fewer {} than values
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        log_msg("{} and {}", { hdr.data.a });  // error: the message has 2 {} for 1 values
    }
}

#include "../include/end.p4"
