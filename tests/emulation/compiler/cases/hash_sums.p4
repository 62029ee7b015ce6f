// Architecture: csum16 and xor16
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<16> sum;
        hash(sum, HashAlgorithm.csum16, 16w0, { hdr.data.a, hdr.data.b, hdr.data.c }, 32w0x10000);
        hdr.data.d[31:16] = sum;
        hash(sum, HashAlgorithm.xor16, 16w0, { hdr.data.a, hdr.data.b, hdr.data.c }, 32w0x10000);
        hdr.data.d[15:0] = sum;
    }
}

#include "include/end.p4"
