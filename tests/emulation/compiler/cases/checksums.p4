// Architecture: update_checksum with csum16
#define OWN_COMPUTE
#define HEADERS data_t data; data_t other;
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = 1; }
}

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.data.isValid() && hdr.data.a == 1, { hdr.data.a, hdr.data.b, hdr.data.d, 16w0xffff },
                        hdr.data.c, HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.data.a == 2, { hdr.data.a, hdr.data.b }, hdr.data.c, HashAlgorithm.csum16);
    }
}

#include "include/end.p4"
