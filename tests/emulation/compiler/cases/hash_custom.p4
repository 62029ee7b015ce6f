// Architecture: hashes by crc16_custom and crc32_custom, whose parameters can be set at run time
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<16> half;
        bit<32> all;
        hash(half, HashAlgorithm.crc16_custom, 16w0, { 72w0x313233343536373839 }, 32w0x10000);
        hash(all, HashAlgorithm.crc32_custom, 32w0, { 72w0x313233343536373839 }, 64w0x100000000);
        hdr.data.c = half;
        hdr.data.d = all;
    }
}

#include "include/end.p4"
