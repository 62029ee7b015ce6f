// Architecture: log_msg with values
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        log_msg("plain");
        log_msg("a = {}, c + 1 = {}", { hdr.data.a, hdr.data.c + 1 });
    }
}

#include "include/end.p4"
