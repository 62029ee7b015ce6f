// Architecture: hash over fields
#include "include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<32> crc;
        bit<16> small;
        hash(crc, HashAlgorithm.crc32, 32w0, { hdr.data.a, hdr.data.b, hdr.data.c }, 32w0xffffffff);
        hash(small, HashAlgorithm.crc16, 16w0x100, { hdr.data.a ++ hdr.data.b, 8w0xff, 8w0x01 }, 16w0x10);
        hash(hdr.data.a, HashAlgorithm.identity, 8w5, { hdr.data.c }, 8w0);
        hash(hdr.data.b, HashAlgorithm.xor16, 8w0, hdr.data, 16w0xff);
        hdr.data.d = crc;
        hdr.data.c = small;
    }
}

#include "include/end.p4"
