// Architecture: log_msg with values, and with headers and tuples as one value
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        log_msg("plain");
        log_msg("a = {}, c + 1 = {}", { hdr.data.a, hdr.data.c + 1 });
        log_msg("data = {}, a = {}.", { hdr.data, hdr.data.a });
        log_msg("pair {}", { { 8w1, hdr.data.a } });
    }
}

#include "include/end.p4"
