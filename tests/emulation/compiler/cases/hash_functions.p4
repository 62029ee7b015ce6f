// Architecture: every hash algorithm on known input
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<32> all;
        bit<16> half;
        hash(half, HashAlgorithm.crc16, 16w0, { hdr.data.a, hdr.data.b, hdr.data.c, hdr.data.d, 8w0x39 }, 32w0x10000);
        hdr.data.c = half;
        hash(all, HashAlgorithm.crc32, 32w0, { 72w0x313233343536373839 }, 64w0x100000000);
        hdr.data.d = all;
        hash(hdr.data.a, HashAlgorithm.identity, 8w16, { hdr.data.b }, 8w10);
    }
}

#include "include/end.p4"
