// Architecture: hashes of numbers without a width
#include "../include/begin.p4"

control CaseIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { hash(hdr.data.a, HashAlgorithm.crc32, 8w0, { 1 }, 8w3); }  // error: the number 1 needs a width here
}

#include "../include/end.p4"
